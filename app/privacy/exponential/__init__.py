"""The exponential mechanism, with its uses: relabelling and the semi-private learner.

* ``mechanism.py`` draws one hypothesis of a class, by its number of errors, and bounds its
  excess error by rows and epsilon.
* ``relabel.py`` gives the rows the labels of a drawn hypothesis.
* ``semi_private.py`` draws a classifier by private labels and public points.
* ``scored_tree.py`` draws a tree for ranking, with noisy counts of labels in its leaves.
* ``amplification.py`` calculates the effect of sampling, relabelling and copies on epsilon.
"""
