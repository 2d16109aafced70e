"""Work beside the queries: other servers on the same ledger, and further batches of rows.

* ``other_servers.py`` reads the ledger again where several servers share one.
* ``living_answerer.py`` answers batches by all active generations, which retire one by one.
* ``tick_clock.py`` fits what was appended and has the writer make the ticks that are due.
"""
