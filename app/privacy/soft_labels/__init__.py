"""Answers with scores: the interval of scores on which enough models agree, or none.

* ``mechanism.py`` answers one query by a stability test, which makes an answer unstable at random
  if a few votes could change it.
"""
