"""An index that finds recorded answers by keyed hash, in blocks of many sorted keys.

An answer is found by its digest, the keyed hash of its query's vector. Digests are like random
numbers, so an ordinary index sorted by digest would change a different page of the database file
for every answer. Here the key of a new answer (the first bytes of its digest) is first stored in a
small table. From there many keys at a time are moved through levels of blocks, each level with more
blocks than the one before; ``docs/ledger-format.md`` has the layout.

* ``key_blocks.py`` has the levels and blocks, and the rule that moves keys between them.
* ``key_map.py`` is a map in memory that tells in which levels a key may be.
* ``recorded_keys.py`` reads and writes the index in a transaction.
"""
