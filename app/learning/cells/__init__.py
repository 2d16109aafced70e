"""Hypothesis class ``cells``: any label for each cell of a public division of feature space.

* ``cell_class.py`` has the class of all labellings of the cells, and exact random draws from it.
* ``nested_grid.py`` has grids over numeric features, and computes the label of each cell from
  counts to which ``app/privacy/noisy_grid/`` has added noise.
* ``learners.py`` trains the model of each chunk, and counts the votes of all models.
* ``class_registration.py`` has the entry of class ``cells`` in the table of
  ``app/learning/registry.py``.
"""
