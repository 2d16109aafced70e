"""Decision trees over public tests: the class, its exact draws, its learners, its votes.

``tree_class.py`` draws exactly by the sums of ``tree_weights.py``; ``learners.py`` fits a
chunk's tree with ``search.py``; ``packed.py`` counts all votes of a batch.
"""
