"""Stability tests make answers unstable at random, more often if few votes could change them.

A table has the probability of an unstable answer for each distance, the number of votes that may
change without changing the leading label.

* ``mechanism.py`` answers one query by the table.
* ``hit_table.py`` builds the table, and checks that it keeps epsilon and delta.
* ``cell_table.py`` is the table for releases that answer each public cell once.
* ``table_inequality.py`` limits how far the probabilities of two neighbouring distances may differ.
* ``profile_parameters.py`` chooses the numbers from which a table is computed, by epsilon, delta
  and the cutoff.
* ``probability_curve.py`` approximates the table in floating point, as a first guess and for
  planning.
* ``answering_registration.py`` has the mechanism's entries in the table
  ``app/privacy/mechanisms.py``.
* ``certified/`` has the same test with another table, which comes with a numeric proof of its
  privacy (calibration ``certified``).
"""
