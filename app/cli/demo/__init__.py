"""``conclave demo``: two releases on generated data, served and queried, and a report.

* ``command.py`` opens, serves and queries the releases.
* ``report.py`` computes the figures from the replies, prints them and writes them.
"""
