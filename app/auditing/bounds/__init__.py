"""Exact lower bounds on epsilon, one module per mechanism; nothing is sampled.

* ``profile_bound.py``: calibration ``profile``, against one query asked until the run ends, and
  against queries chosen after each answer.
* ``threshold_bound.py``: calibration ``svt`` (sparse vector), against an adversary who learns the
  threshold first.
* ``vote_bound.py``: the noisy vote, against the same query asked many times; ``bit_bound.py``: the
  noisy vote with two labels, against repeated and adaptive queries.
* ``decision_bound.py``: answers that are given once a cell, against adaptive adversaries.
"""
