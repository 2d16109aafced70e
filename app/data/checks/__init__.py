"""Checks of the private rows before any privacy budget is spent, shown to the operator only.

* ``source_check.py`` counts the values that do not fit the schema, for ``conclave check``.
* ``dead_features.py`` finds features without information, for example a feature that is missing in
  every row.
* ``public_overlap.py`` refuses public points (feature vectors) that are rows of the private source.
"""
