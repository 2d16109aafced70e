"""The readers of private rows: one module a format.  A row is read alone, whatever its neighbours.

* ``sources.py`` chooses the reader of an address and reads all rows.
* ``csv_source.py``, ``npz_source.py``, ``parquet_source.py`` and ``database_source.py`` (any
  database, by an SQL query) open a source and yield blocks of columns.
* ``parquet_parts.py`` lists the files of a folder of Parquet parts.
* ``row_wise.py`` reads the text of an SQL query, and refuses one that may not give one row for
  each record.
* ``row_blocks.py`` collects blocks from any reader into arrays, and refuses rows that do not fit.
* ``cells.py`` validates and encodes the values of one column.  For messages it finds the public
  name that a text nearly spells, but for blanks, capitals or dashes.
"""
