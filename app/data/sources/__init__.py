"""The readers of private rows, one module per format; each row is read independently.

* ``sources.py`` chooses the reader of an address and reads all rows.
* ``csv_source.py``, ``npz_source.py``, ``parquet_source.py`` and ``database_source.py`` (any
  database, by an SQL query) open a source and yield blocks of columns.
* ``parts.py`` lists the files of a folder, a pattern or Hive partitions; ``stored_files.py``
  finds and opens files on disks and in object stores.
* ``encoded_parts.py`` reads one part alone, for whoever reads the parts of a source separately.
* ``csv_dialect.py`` has the dialect of a CSV; ``csv_records.py`` cuts its bytes into blocks of
  records.
* ``arrow_texts.py`` reads texts of a column together, each as if it were alone.
* ``row_wise.py`` reads the text of an SQL query, and refuses one that may not give one row for
  each record.
* ``row_blocks.py`` collects blocks from any reader into arrays, and refuses rows that do not fit.
* ``cells.py`` validates and encodes the values of one column.  For messages it finds the public
  name that a text nearly spells, but for blanks, capitals or dashes.
"""
