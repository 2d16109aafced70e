"""The exponential mechanism, with its uses: relabelling and the semi-private learner.

* ``mechanism.py`` draws one hypothesis from a class, more likely one with few errors, and bounds
  the drawn hypothesis's excess error by the number of rows and epsilon.
* ``relabel.py`` gives the rows the labels of a drawn hypothesis.
* ``semi_private.py`` draws a classifier from private labelled rows and public points.
* ``scored_tree.py`` draws a tree for ranking, with noisy counts of labels in its leaves.
* ``amplification.py`` calculates the effect of sampling, relabelling and repeated rows on epsilon.
"""
