"""The hypothesis class that gives each region (cell) of a public partition any label.

* ``cell_class.py`` has the class of all labellings of the cells, and its exact draws.
* ``nested_grid.py`` has grids over numbers, and the labels that noisy counts give their cells.
* ``learners.py`` fits each chunk's labelling, and counts the ensemble's votes.
* ``class_row.py`` is the row of ``app/learning/registry.py``: make, fit, read back.
"""
