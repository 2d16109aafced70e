"""Backup, restore and retirement of a ledger, so that no spent budget is forgotten.

* ``copies.py`` makes a backup, restores a backup, and retires a ledger permanently.
* ``copy_target.py`` fills a new database with all rows, in one transaction; moving a ledger
  (``app/ledger/move_database.py``) uses it too.
"""
