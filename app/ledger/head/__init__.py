"""The head file: a note of the newest entry outside the database, which exposes old copies.

* ``head_file.py`` reads the file, and writes it after commits, on a thread of its own.
* ``rollback.py`` compares a ledger with it, and refuses a ledger that lacks noted entries.
"""
