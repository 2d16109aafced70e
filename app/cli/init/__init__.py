"""``conclave init``: write a configuration from public facts, or made-up rows that fit one.

No row of the records is read. Of the records' file the first line alone is, for its names.

* ``command.py`` has the options, reads the files, and writes the result.
* ``header_line.py`` reads the names of a table's columns, and no byte after them.
* ``columns.py`` is what is publicly known of a column; the other modules fill it in.
* ``dictionary.py`` reads a data dictionary: a CSV, or a Table Schema in JSON.
* ``sample.py`` reads a public sample: kinds, bounds, categories, cuts and shares.
* ``questions.py`` asks in a terminal for the facts that no file has.
* ``configuration_text.py`` writes it all as TOML with comments.
* ``made_up_rows.py`` makes rows up that fit a configuration's schema.
* ``next_command.py`` prints the command that comes next; other commands print theirs by it too.
"""
