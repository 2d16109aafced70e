"""The sparse vector technique for answering queries, with proved constants.

* ``mechanism.py`` answers one query; ``calibration.py`` finds the noise scales and the threshold
  for a budget.
* ``answering_registration.py`` has the mechanism's entry in the table
  ``app/privacy/mechanisms.py``.
"""
