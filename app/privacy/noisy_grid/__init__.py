"""A classifier from noisy label counts on public grids of several resolutions.

* ``mechanism.py`` counts and adds noise; ``proof.md`` says why that keeps the claim.
"""
