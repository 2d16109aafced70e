"""Problems of the private rows, for the operator's terminal alone, before any charge.

* ``source_check.py`` counts the values that do not fit the schema, for ``conclave check``.
* ``dead_features.py`` finds features without information, as one that is missing in every row.
* ``public_overlap.py`` refuses public points that are the private source, or rows of it.
"""
