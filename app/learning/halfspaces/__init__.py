"""Halfspaces that are listed exactly, over public points or over a public grid of integers.

* ``lattice.py`` gives numbers integer coordinates, and makes the public grid.
* ``arrangement.py`` finds every way in which a halfspace can label points on a line or in a plane.
* ``space_labellings.py`` does the same for points in space.
* ``halfspaces.py`` makes the hypothesis class of these halfspaces.
* ``class_registration.py`` has the entry of this class in the table of
  ``app/learning/registry.py``.
"""
