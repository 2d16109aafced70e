"""Entries: their kinds, their canonical bytes, the chain of hashes, and the fold of the budget.

``entry_kinds.py`` lists the kinds; ``chain.py`` links them; ``fold.py`` computes every balance
from them; ``replay.py`` folds from the newest checkpoint.
"""
