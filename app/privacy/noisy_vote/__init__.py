"""The noisy vote: the label with the largest count after exact Gaussian noise.

* ``mechanism.py`` is one step; ``calibration.py`` finds the noise.
* ``answering_row.py`` is its row of ``app/privacy/mechanisms.py``: calibrate, check, step, explain.
"""
