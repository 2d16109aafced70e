"""Answers with scores: the interval of scores on which enough models agree, or none.

* ``mechanism.py`` is one step; its noise is that of the stability test that it uses.
"""
