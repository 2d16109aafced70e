"""Private query release with public data: a noisy table of expected labels for statistics.

* ``mechanism.py`` draws the table by private multiplicative weights.
* ``calibration.py`` finds the table's noise, threshold and number of updates.
"""
