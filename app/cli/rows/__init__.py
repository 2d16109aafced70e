"""Commands that add, correct or erase rows of a release, also while it is served.

* ``append.py``: a further generation of rows.
* ``erase.py`` and ``correct.py``: rows that are forgotten or replaced, at the next tick.
"""
