"""``conclave audit``: lower bounds on epsilon, by calculation or by attacking whole releases.

* ``command.py`` defines the options, runs ``app/auditing/audit.py`` and prints the report.
* ``neighbours.py`` makes two data sets that differ in one record, and the settings to serve them.
* ``audited_release.py`` runs one release: it starts real servers, sends queries, restarts the
  servers and records every reply.
* ``audited_releases.py`` runs many releases in several processes, and compares their replies.
"""
