"""Hypothesis class ``halfspaces``: one halfspace for each way to label given points by halfspaces.

The points are those of a public grid, or private rows.

* ``lattice.py`` gives numbers integer coordinates, and makes the public grid.
* ``arrangement.py`` finds every way in which a halfspace can label points on a line or in a plane.
* ``space_labellings.py`` does the same for points in space.
* ``halfspaces.py`` makes the hypothesis class of these halfspaces.
* ``class_registration.py`` has the entry of this class in the table of
  ``app/learning/registry.py``.
"""
