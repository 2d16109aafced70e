"""Ledger entries: their kinds, their hash chain, and the release's state computed from them.

* ``entry_kinds.py`` lists the kinds of entry with their fields.
* ``chain.py`` writes an entry in canonical bytes, and links it to the one before by its hash.
* ``fold.py`` computes every balance and counter from the entries, and refuses an entry that
  does not follow from those before it, when it is written and when it is read.
* ``generations.py`` does that for the entries of a release that takes generations of rows.
* ``event_rules.py`` has that refusal's error, and the rules for answers with scores.
* ``checkpoint.py`` stores the result of the fold at an entry, for a fast start.
* ``replay.py`` folds from a known state to the newest entry, and checks the answers since.
* ``full_check.py`` folds again from entry one while a server runs.
* ``digests.py`` makes the keyed digests that stand for vectors, keys and rows.
"""
