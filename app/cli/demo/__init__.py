"""``conclave demo``: two releases on generated data, served and asked, and a report on them.

* ``command.py`` opens, serves and asks the releases.
* ``report.py`` works out the figures from the replies, prints them and writes them.
"""
