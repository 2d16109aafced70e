"""The public hypotheses of a statistics table, and the cells on which each of them has one label.

A statistics table contains, for each hypothesis of a class, the number of private rows to which the
hypothesis gives its second label, with noise. The labels of the rows themselves are not used.

* ``table_hypotheses.py`` chooses the tests of features, and lists one hypothesis for each labelling
  of public points (feature vectors); it refuses a table that is too large.
* ``representative_domain.py`` has the public grid with one point for each joint outcome of the
  tests. It assigns rows to the grid's points, and joins points into one cell if each hypothesis
  gives them the same label.
"""
