"""Soft labels: a bin of scores that enough learners agree on, or none.

* ``mechanism.py`` is one step; its noise is that of the mechanism inside it.
"""
