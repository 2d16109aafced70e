"""Noisy counts of labels on public grids of several resolutions: a classifier of a few numbers.

* ``mechanism.py`` counts and adds noise; ``proof.md`` says why that keeps the claim.
"""
