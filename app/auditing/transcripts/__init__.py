"""Records of everything that servers sent over HTTP in whole releases, and bounds on epsilon.

The servers are run by ``app/cli/audit/audited_releases.py``.

* ``reply_checks.py`` checks one run exactly: its answers are counted, and given again, across
  restarts.
* ``transcripts.py`` compares the transcripts of two neighbouring data sets, and bounds epsilon by
  the channel that differs most.
* ``http_audit.py`` plans the runs, applies both, and makes the report.
"""
