"""``conclave init``: write a configuration from public facts, or made-up rows that fit one.

No private row is read: of the file of records, only the first line with the column names.

* ``command.py`` defines the options, reads the files, and writes the result.
* ``header_line.py`` reads the column names of a table, and no byte after them.
* ``columns.py`` defines the public facts about a column, which other modules fill in.
* ``dictionary.py`` reads a data dictionary: a CSV, or a Table Schema in JSON.
* ``sample.py`` reads a public sample: the kinds of columns, bounds, categories, cuts (thresholds of
  features), and the fraction of people in each category or above each cut.
* ``questions.py`` asks in a terminal for the facts that no file contains.
* ``configuration_text.py`` writes the configuration as TOML with comments.
* ``made_up_rows.py`` generates rows that fit the schema of a configuration.
* ``next_command.py`` prints the next command to run, for ``init`` and for other commands.
"""
