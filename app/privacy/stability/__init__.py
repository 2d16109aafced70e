"""Stability tests make answers unstable at random, more often if few votes could change them.

* ``mechanism.py`` answers one query by the table of probabilities of an unstable answer.
* ``hit_table.py`` builds and checks this table, in integers.
* ``cell_table.py`` is the table for releases that answer each public cell once.
* ``table_inequality.py`` decides the inequality that Theorem A requires of two neighbouring entries
  of a table.
* ``profile_parameters.py`` chooses a table's Renyi order alpha, the privacy cost (price) ln R of
  an unstable answer, and the parts of delta.
* ``probability_curve.py`` approximates the table in floating point, as a first guess and for
  planning.
* ``answering_registration.py`` has the mechanism's entries in the table
  ``app/privacy/mechanisms.py``.
* ``certified/`` has the same test with another table, proved private by a certificate (Theorem C,
  calibration ``certified``).
"""
