"""The learner ``grid``: a classifier from noisy label counts on public grids.

* ``mechanism.py`` counts and adds noise; ``proof.md`` says why that keeps the claim.
"""
