"""The readers of private rows, one module per format; each row is read independently.

* ``sources.py`` chooses the reader for a source, and reads all rows.
* ``csv_source.py``, ``npz_source.py``, ``parquet_source.py`` and ``database_source.py`` (any
  database, by an SQL query) open a source and yield blocks of columns.
* ``parts.py`` lists the files of a folder, a path pattern or Hive partitions. ``stored_files.py``
  finds and opens files on disks and in object stores.
* ``encoded_parts.py`` reads one part of a source alone: a file, or a section of a file.
* ``csv_dialect.py`` has the separators and the encoding of a CSV file. ``csv_records.py`` divides
  its bytes into blocks of records.
* ``arrow_columns.py`` has the rule for the values of an Arrow column, such as one of Parquet, and
  ``arrow_texts.py`` parses many texts of a column together, with the same results as one by one.
* ``sql_query_check.py`` checks the text of an SQL query, and refuses a query that may not return
  one row for each record.
* ``row_blocks.py`` collects blocks from any reader into arrays, and refuses rows that do not fit.
* ``column_values.py`` validates and encodes the values of one column. For messages it finds the
  category or class from whose name a text differs only in blanks, capitals or dashes.
"""
