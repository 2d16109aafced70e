"""The noisy vote: the label with the largest count after exact Gaussian noise.

* ``mechanism.py`` is one step; ``calibration.py`` finds the noise.
"""
