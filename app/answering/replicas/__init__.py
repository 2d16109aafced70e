"""Coordination with other servers (replicas) of the same ledger.

* ``other_servers.py`` reads the ledger again where several servers share one.
* ``forwarding.py`` lets one server commit the batches of all servers.
"""
