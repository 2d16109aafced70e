"""The public part of a statistics table: its hypotheses, and the cells on which they agree.

* ``covering.py`` chooses the tests, and lists one hypothesis for each labelling of the public
  points; it refuses too many.
* ``cut_grid.py`` is the public grid of all outcomes of the tests, and places rows on it.
* ``representative_domain.py`` joins points of a grid into cells: all hypotheses label a cell alike.
"""
