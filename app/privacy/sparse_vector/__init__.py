"""The sparse vector technique, calibration ``svt``, with constants that are proved.

* ``mechanism.py`` is one step; ``calibration.py`` finds its scales and threshold.
* ``answering_row.py`` is its row of ``app/privacy/mechanisms.py``: calibrate, check, step, explain.
"""
