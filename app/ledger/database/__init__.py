"""SQLite and PostgreSQL: tables, statements, protections, locks, and opening.

The only folder that knows SQLAlchemy's dialects.  ``tables.py`` has the tables, ``driver.py``
the statements of the hot path, ``opening.py`` brings a database to the newest revision.
"""
