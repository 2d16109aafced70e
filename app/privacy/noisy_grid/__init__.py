"""The learner ``grid``: a classifier from noisy label counts in the cells of public grids.

* ``mechanism.py`` counts the labels in the cells of each grid and adds noise; ``proof.md`` proves
  the privacy claim.
"""
