"""The public parts of a statistics table: hypotheses, and cells on which each is constant.

* ``table_hypotheses.py`` chooses the tests, and lists one hypothesis for each labelling of the
  public points; it refuses too many.
* ``representative_domain.py`` has the public grid of all outcomes of the tests, places rows on it,
  and joins its points into cells: all hypotheses label a cell alike.
"""
