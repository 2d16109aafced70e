"""The public parts of a statistics table: hypotheses, and cells on which each has one label.

A statistics table contains the number of private rows with the second outcome for each hypothesis
of a class, with noise.

* ``table_hypotheses.py`` chooses the tests of features, and lists one hypothesis for each labelling
  of public points (feature vectors); it refuses a table that is too large.
* ``representative_domain.py`` has the public grid with one point for each joint outcome of the
  tests. It assigns rows to the grid's points, and joins points into one cell if each hypothesis
  gives them the same label.
"""
