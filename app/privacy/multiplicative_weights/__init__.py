"""Private query release with public data: a noisy table of mean outcomes of rules, for statistics.

* ``mechanism.py`` draws the table by private multiplicative weights.
* ``calibration.py`` finds the noise, the number of updates (corrections of the table by a noisy
  count), and the threshold of the error above which a count is corrected.
"""
