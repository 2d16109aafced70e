"""The noisy vote: each of m answers has a label, by noisy counts of the models' votes.

* ``bit_vote.py`` is one step with two labels, by a table over the votes; ``vote_table.py`` builds
  and checks the table in integers, and ``vote_curve.py`` has it in doubles, for planning.
* ``decision_votes.py`` is the table where each cell is answered once.
* ``mechanism.py`` is one step with more labels, by Gaussian noise on the counts;
  ``calibration.py`` finds and checks the noise.
* ``answering_row.py`` has the rows of ``app/privacy/mechanisms.py``: calibrate, check, step,
  explain.
"""
