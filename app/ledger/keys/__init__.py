"""An index of recorded answers by keyed hash, in sorted blocks that are written in order.

An index in the order of digests dirties a page for every answer, since digests have no order.
Here a new key goes to a small unsorted part with a unique index, and from there, many at a
time, through levels of ever finer blocks; ``docs/ledger-format.md`` has the layout.
"""
