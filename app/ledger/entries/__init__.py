"""Ledger entries: their kinds, their hash chain, and the release's state computed from them.

* ``entry_kinds.py`` lists the kinds of entry with their fields.
* ``chain.py`` writes an entry in canonical bytes, and links it to the previous entry by its hash.
* ``fold.py`` computes every balance and counter from the entries, and refuses an entry that may not
  follow the earlier entries, when it is written and when it is read.
* ``generations.py`` does the same for the entries of a release that accepts further batches of
  rows.
* ``illegal_entries.py`` has the error for an entry that may not follow the earlier entries.
* ``scored_answers.py`` checks entries of answers with scores.
* ``short_bodies.py`` has the form of a stored body that lacks what the rows of answers hold.
* ``checkpoint.py`` stores the state at an entry, for a fast start.
* ``newest_entries.py`` computes the newest state from a known state and the later entries, and
  checks the later answers.
* ``full_check.py`` computes the state again from the first entry while a server runs.
* ``digests.py`` makes the keyed hashes by which entries and tables refer to private values.
"""
