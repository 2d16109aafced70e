"""The head file: a note of a ledger's newest entry outside its database, to detect old copies.

* ``head_file.py`` reads the file, and writes it after commits, on a separate thread.
* ``replaced_file.py`` replaces small files as a whole, this one and others.
* ``rollback.py`` compares a ledger with the file, and refuses a ledger that lacks noted entries.
"""
