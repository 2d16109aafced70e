"""The ledger: hash-chained entries that are only added, recorded answers, and private state.

* ``ledger.py`` opens and reads a ledger; ``transaction.py`` writes to it.
* ``verification.py`` recomputes everything from the first entry, for ``conclave verify``.
* ``releases.py`` lists the releases of one database, and adds up their privacy promises.
* ``asked_vectors.py`` stores query vectors that got the recorded answer of their cell, and
  ``erasure_state.py`` stores pending erasures. Both are private state outside the entries.
* ``api_key_counts.py`` counts the answers to each API key, outside the entries.
* ``disk_and_backups.py`` has facts about the machine: the newest backup, and the free disk space.
* ``server_lock.py`` lets only one server at a time open an SQLite ledger.
* ``move_database.py`` moves a whole ledger to another database: ``conclave ledger copy``.
* ``copies/`` has backup and restoring, ``entries/`` the kinds of entry and the state computed from
  them, ``answer_index/`` the index of recorded answers, ``database/`` SQLite and PostgreSQL, and
  ``head/`` the note of the newest entry outside the database.
"""
