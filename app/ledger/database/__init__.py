"""The databases of a ledger, SQLite and PostgreSQL: tables, statements, triggers, locks.

The only folder that knows SQLAlchemy's dialects.

* ``tables.py`` declares the tables.
* ``database.py`` chooses the kind of database by its address, and has the interface of both kinds.
* ``sqlite.py`` and ``postgresql.py`` have the parts in which they differ.
* ``open_database.py`` opens or creates a database, and brings its tables to the newest revision.
* ``statements.py`` reads entries, answers and private pieces, page by page.
* ``key_lookups.py`` finds recorded answers and idempotency keys by digest, a whole batch at once.
* ``driver.py`` sends the frequent statements past SQLAlchemy, holds the writer's connection, and
  turns a database's errors into ours.
* ``protections.py`` checks triggers, indexes and stored types, for verification.
* ``hour_counts.py`` stores counts of requests by hour, from all servers of a ledger.
* ``notifications.py`` sends messages between these servers, and has the lock of their leader.
* ``locks.py`` locks files, and lets one process draw at a time.
"""
