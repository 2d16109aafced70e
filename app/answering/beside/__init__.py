"""Coordination with other servers of the same ledger, and with rows that are added later.

* ``other_servers.py`` reads the ledger again where several servers share one.
* ``living_answerer.py`` answers batches by all active generations, which retire one by one.
* ``tick_clock.py`` fits what was appended and has the writer make the ticks that are due.
"""
