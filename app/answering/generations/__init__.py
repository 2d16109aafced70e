"""Answering in a release whose rows are added, erased and corrected in batches (generations).

* ``generations_answerer.py`` answers a batch of queries by all active generations, which retire
  one by one.
* ``tick_clock.py`` trains models for rows that were added, and has the writer make the scheduled
  updates (ticks) that are due.
"""
