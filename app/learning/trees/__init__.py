"""Decision trees over public tests of features: the class, random draws, learners and votes.

The exponential mechanism draws one of all trees of a given depth:

* ``tree.py`` has one tree, and ``tree_class.py`` the class of all trees.
* ``tree_distribution.py`` sums the weights ``exp(-epsilon * errors / 2)`` of all trees, and draws
  one. ``upper_level_weights.py`` has the sums for the upper levels of the trees, and
  ``lower_level_weights.py`` the sums for the two lowest.
* ``regions.py`` counts the private rows on which several tests are true.
* ``tree_lists.py`` has lists of trees, with one tree for each way in which trees label some points.

A learner trains the model of each chunk:

* ``learners.py`` trains the models of all chunks by one of two rules. ``canonical_learner.py``
  takes the tree with the fewest errors, and ``halving_learner.py`` takes a hundred random trees
  without errors.
* ``counted_fit.py`` trains the canonical trees of all chunks from counts of rows, for two labels
  and a depth of at most three. ``cell_counts.py`` makes these counts.
* ``tree_search.py`` rates and grows trees for both rules.

The models vote:

* ``packed_trees.py`` stores the trees as arrays, and computes votes and scores. The time does not
  depend on the trees or the queries.
* ``class_registration.py`` has the entry of this class in the table of
  ``app/learning/registry.py``, and estimates the time of training.
"""
