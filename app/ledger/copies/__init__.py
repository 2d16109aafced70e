"""Copies of a ledger from which no spent budget is lost: backup, restore, retirement.

* ``copies.py`` makes a backup, restores one, and retires a ledger for good.
* ``copy_target.py`` fills a new database with all rows, in one transaction; moving a ledger
  (``app/ledger/moving.py``) uses it too.
"""
