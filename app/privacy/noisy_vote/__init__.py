"""The noisy vote: each of m answers has a label, by noisy counts of the models' votes.

* ``bit_vote.py`` answers one query with two labels, by a table of label probabilities;
  ``vote_table.py`` builds and checks this table in integers, and ``vote_curve.py`` approximates it
  in floating point, for planning.
* ``cell_vote_table.py`` is the table for releases that answer each public cell once.
* ``mechanism.py`` answers one query with more labels, by Gaussian noise on the counts;
  ``calibration.py`` finds and checks the noise's variance.
* ``answering_registration.py`` has this mechanism's entries in the table
  ``app/privacy/mechanisms.py``.
"""
