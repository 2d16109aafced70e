"""Halfspaces over public points or a grid of integers, listed exactly.

* ``lattice.py`` places numbers on an integer lattice, and makes the public grid.
* ``arrangement.py`` finds every way in which a halfspace parts points, on a line and in a plane.
* ``plane_labellings.py`` does the same in space, where planes part the points.
* ``halfspaces.py`` makes the hypothesis class of these halfspaces.
* ``class_row.py`` is the row of ``app/learning/registry.py``: make, fit, read back.
"""
