"""``conclave query``: send the rows of a CSV to a server and write a copy with the answers.

* ``command.py`` defines the options, reads the CSV and writes the answers.
* ``table_rows.py`` turns rows of the CSV into lines of ``POST /query/stream``.
* ``client.py`` sends the lines, and sends lines without an answer again.
"""
