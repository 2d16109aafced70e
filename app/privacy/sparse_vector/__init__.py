"""Theorem B, calibration ``svt``: the papers' sparse vector with honest constants.

* ``mechanism.py`` is one step; ``calibration.py`` finds its scales and threshold.
"""
