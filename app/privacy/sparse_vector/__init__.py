"""Theorem B, calibration ``svt``: the papers' sparse vector with honest constants.

* ``mechanism.py`` is one step; ``calibration.py`` finds its scales and threshold.
* ``answering_row.py`` is its row of ``app/privacy/mechanisms.py``: calibrate, check, step, explain.
"""
