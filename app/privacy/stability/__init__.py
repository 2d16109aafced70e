"""The stability test: the fewer votes decide an answer, the likelier a coin makes it unstable.

* ``mechanism.py`` is one step, which reads the table.
* ``hit_table.py`` builds and checks the table that serves, in integers.
* ``decision_table.py`` is a shorter table for decisions that are counted; it serves nothing yet.
* ``threshold_inequality.py`` decides the theorem's inequality between two entries of it.
* ``profile_parameters.py`` chooses alpha, ln R and the parts of delta, before a table is built.
* ``probability_curve.py`` has the same table in floating point, as a first guess and for planning.
* ``answering_row.py`` is its row of ``app/privacy/mechanisms.py``: calibrate, check, step, explain.
* ``certified/`` is Theorem C, calibration ``certified``: the same step by another table.
"""
