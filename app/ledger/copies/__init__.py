"""Backup, restore and retirement of a ledger, so that no spent budget is forgotten.

* ``copies.py`` makes a backup, restores one, and retires a ledger for good.
* ``copy_target.py`` fills a new database with all rows, in one transaction; moving a ledger
  (``app/ledger/move_database.py``) uses it too.
"""
