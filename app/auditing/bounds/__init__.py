"""Exact lower bounds on epsilon, one module per mechanism; nothing is sampled.

An adversary chooses queries on which two neighbouring data sets have different votes. The stability
test is the noisy test that decides whether an answer is stable.

* ``profile_bound.py``: the stability test with calibration ``profile``, against one query asked
  until the run ends, and against queries that depend on earlier answers.
* ``threshold_bound.py``: the sparse vector technique (calibration ``svt``), against an adversary
  who first learns that the threshold's noise is small.
* ``vote_bound.py``: the noisy vote (the label with the most votes after noise is added), against
  the same query asked many times.
* ``bit_bound.py``: the noisy vote with two labels, against repeated and adaptive queries.
* ``cell_bound.py``: answers that are given only once per public cell, against adaptive
  adversaries.
"""
