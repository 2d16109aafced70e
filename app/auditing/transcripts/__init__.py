"""Records of everything that servers sent over HTTP in whole releases, and bounds on epsilon.

The servers are run by ``app/cli/audit/audited_releases.py``.

* ``reply_checks.py`` checks one run exactly: whether its answers are counted, and repeated for the
  same query, also after restarts.
* ``transcripts.py`` compares the transcripts of two neighbouring data sets, and bounds epsilon by
  the part of the replies (channel) that differs most.
* ``http_audit.py`` plans the runs, applies both checks, and makes the report.
"""
