"""Commands on the rows of a release that takes generations, beside a running server too.

* ``append.py``: a further generation of rows.
* ``erase.py`` and ``correct.py``: rows that are forgotten or replaced, at the next tick.
"""
