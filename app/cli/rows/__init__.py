"""Commands that add, correct or erase rows of a release, also while it is served.

* ``append.py`` adds a batch of rows (a generation).
* ``erase.py`` and ``correct.py`` remove or replace rows at the next scheduled update (tick).
"""
