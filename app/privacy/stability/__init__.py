"""Theorem A: an unstable answer by a table of probabilities over the distance.

``mechanism.py`` is the step; ``table.py`` builds and checks the table on integers;
``inequality.py`` decides (*) exactly.
"""
