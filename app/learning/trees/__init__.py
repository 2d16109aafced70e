"""Decision trees over public tests: the hypothesis class, random draws, learners and votes.

The exponential mechanism draws from all trees of a depth:

* ``tree.py`` is one tree; ``tree_class.py`` is the class of all of them.
* ``tree_distribution.py`` sums the weights of all trees, and draws one; ``region_tables.py`` has
  the sums of the upper levels, ``tree_terms.py`` those of the two lowest.
* ``regions.py`` counts private rows where several tests hold, as bit vectors.
* ``tree_lists.py`` has lists of trees: one for each labelling that trees give to some points.

A learner fits one chunk:

* ``learners.py`` fits all chunks by one of two rules. ``canonical_learner.py`` has the rule of
  least errors with ties broken alike, ``halving_learner.py`` that of many random trees without
  errors.
* ``counted_fit.py`` finds the canonical trees of all chunks from counts of rows, where two labels
  and three levels allow it; ``cell_counts.py`` has those counts.
* ``tree_search.py`` scores and grows the trees for both rules; ``class_row.py`` estimates the time.

The k learners vote:

* ``packed_trees.py`` holds their trees as arrays, asks the tests, and goes from outcomes to leaves,
  votes and scores, by the same work for any.
* ``class_row.py`` is the row of ``app/learning/registry.py``: make, fit, read back.
"""
