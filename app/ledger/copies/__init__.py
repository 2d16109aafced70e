"""Backup, restore and retirement of a ledger, so that no spent budget is forgotten.

* ``copies.py`` makes a backup, restores a backup, and retires a ledger permanently.
* ``partial_copy.py`` has the hidden folder in which a copy is built, and removes abandoned ones.
* ``copy_target.py`` fills a new database with all rows, in one transaction; moving a ledger
  (``app/ledger/move_database.py``) uses it too.
"""
