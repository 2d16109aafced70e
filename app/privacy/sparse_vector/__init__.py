"""The sparse vector technique for answering queries, with proved constants.

* ``mechanism.py`` is one step; ``calibration.py`` finds its scales and threshold.
* ``answering_row.py`` is its row of ``app/privacy/mechanisms.py``: calibrate, check, step, explain.
"""
