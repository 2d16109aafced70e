"""An index of recorded answers by keyed hash, in sorted blocks that are written in order.

An index in the order of digests dirties a page for every answer, since digests have no order.
Here a new key goes to a small unsorted part with a unique index, and from there, many at a
time, through levels of ever finer blocks; ``docs/ledger-format.md`` has the layout.

* ``key_blocks.py`` has the levels and blocks, and the rule that moves keys between them.
* ``recorded_keys.py`` reads and writes the index in a transaction.
"""
