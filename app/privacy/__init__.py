"""Differentially private mechanisms and their calibrations, one folder each; without any I/O.

A folder has the mechanism (its step or draw), its calibration (the least noise that keeps the
claim) where it has one, and the proof.  For the ensemble's answers: ``stability/``,
``sparse_vector/``, ``noisy_vote/``, ``soft_labels/``.  For one draw: ``exponential/``
(relabelling, classifier), ``noisy_gradient/`` (linear classifier), ``noisy_grid/`` (classifier
of a few numbers), ``query_release/`` (statistics).  ``voting/`` goes from votes to answers,
``generations/`` lets a release go on with further rows, ``budget/`` divides and adds up epsilon,
``paper/`` has the papers' own parameters.

* ``mechanisms.py`` is the table of the mechanisms of answers; ``answering_rows.py`` has the type of
  a row.
* ``published_learners.py`` is the table of what is public of the classifier's learners.
* ``arithmetic.py`` calculates in decimals that are rounded up or down, so that no error helps us.
"""
