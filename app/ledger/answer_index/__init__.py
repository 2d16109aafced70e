"""An index of recorded answers by keyed hash, in sorted blocks that are written in order.

Digests are in no order, so an ordinary index by digest would write a different page of the file for
every answer. Here the key of a new answer (a part of its digest) is first stored in a small
unsorted table with a unique index. From there many keys at a time are moved through levels of
smaller and smaller blocks; ``docs/ledger-format.md`` has the layout.

* ``key_blocks.py`` has the levels and blocks, and the rule that moves keys between them.
* ``recorded_keys.py`` reads and writes the index in a transaction.
"""
