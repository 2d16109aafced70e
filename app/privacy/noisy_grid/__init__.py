"""The learner ``grid``: a classifier from noisy label counts on public grids.

* ``mechanism.py`` counts the labels in the cells of each grid and adds noise; ``proof.md`` proves
  the privacy claim.
"""
