"""``conclave demo``: two releases on generated data, served and queried, and a report.

* ``command.py`` opens, serves and asks the releases.
* ``report.py`` works out the figures from the replies, prints them and writes them.
"""
