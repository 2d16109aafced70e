"""The databases of a ledger, SQLite and PostgreSQL: tables, statements, triggers, locks.

No other folder uses SQLAlchemy's dialects (its parts for one kind of database).

* ``tables.py`` declares the tables.
* ``database.py`` chooses the kind of database by its address, and has the interface of both kinds.
* ``sqlite.py`` and ``postgresql.py`` implement the parts in which the two kinds differ.
* ``open_database.py`` opens or creates a database, and migrates its tables to the newest version.
* ``statements.py`` reads checkpoints, keys and private values, a limited number of rows at a time.
* ``entry_rows.py`` reads entries, and makes their bodies whole from the groups of their answers.
* ``recorded_answers.py`` has the form of a recorded answer in memory.
* ``answer_tables.py`` reads recorded answers, a limited number at a time.
* ``key_lookups.py`` finds recorded idempotency keys (of repeated requests) by their digests;
  answers are found by ``app/ledger/answer_index/``.
* ``driver.py`` sends the frequent statements directly to the database's driver, keeps the writer's
  connection, and converts a database's errors to Conclave's errors.
* ``protections.py`` checks triggers, indexes and stored types, for verification.
* ``hour_counts.py`` stores the hourly counts of ``app/answering/hourly_counts.py``, added up over
  all servers of a ledger.
* ``notifications.py`` sends messages between the servers of one PostgreSQL ledger, and has the lock
  that makes one of them the leader, which answers the queries of all servers.
* ``locks.py`` locks files, and lets one process at a time draw a classifier or a statistics table.
"""
