"""The head file: a note of a ledger's newest entry outside its database, to detect old copies.

* ``head_file.py`` reads the file, and writes it after commits, on a separate thread.
* ``rollback.py`` compares a ledger with the file, and refuses a ledger that lacks noted entries.
"""
