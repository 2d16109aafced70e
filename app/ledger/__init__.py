"""The ledger: hash-chained entries that are only added, recorded answers, and private state.

* ``ledger.py`` opens a ledger, and reads it; ``transaction.py`` writes to it.
* ``verification.py`` recomputes everything from entry one, for ``conclave verify``.
* ``releases.py`` lists the releases of one database, and adds up their promises.
* ``asked_vectors.py`` has the vectors recorded beside the answer to their cell, and
  ``erasure_state.py`` pending erasures: private pieces beside the entries.
* ``key_counts.py`` counts the answers of each API key, outside the entries.
* ``disk_and_backups.py`` tells of the machine: the note of the newest backup, and the room of the
  disk.
* ``server_lock.py`` lets one server at a time open an SQLite ledger.
* ``move_database.py`` moves a whole ledger to another database: ``conclave ledger copy``.
* ``copies/`` has backup and restoring, ``entries/`` the kinds of entry and their sums, ``keys/``
  the index of answers, ``database/`` SQLite and PostgreSQL, ``head/`` the note of the newest
  entry.
"""
