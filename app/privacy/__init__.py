"""The mechanisms and their calibrations, one folder a mechanism.  Pure.

In each folder: ``mechanism.py`` (parameters, state, step or draw), ``calibration.py`` (the
smallest noise that keeps the claim) and ``proof.md``; one that answers has an
``answering_row.py``, and its row in the table ``mechanisms.py``.  ``voting/`` goes from votes to a
release's answers by any of them; ``budget/`` composes shares; ``paper/`` has the papers' own
constants.
"""
