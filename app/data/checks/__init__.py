"""Checks of the private rows before any budget is spent, shown to the operator alone.

* ``source_check.py`` counts the values that do not fit the schema, for ``conclave check``.
* ``dead_features.py`` finds features without information, as one that is missing in every row.
* ``public_overlap.py`` refuses public points that are the private source, or rows of it.
"""
