"""``conclave audit``: lower bounds on epsilon, by calculation or by attacking whole releases.

* ``command.py`` has the options, runs ``app/auditing/audit.py`` and prints the report.
* ``neighbours.py`` makes two data sets that differ in one record, and the settings to serve them.
* ``audited_release.py`` runs one release: it starts real servers, asks, restarts them and keeps
  every reply.
* ``audited_releases.py`` runs many of these in processes, and compares their replies.
"""
