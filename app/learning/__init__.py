"""Hypothesis classes, the k learners, and all their votes at once.  Pure.

One folder a class: what it is, how it is drawn exactly, how a chunk's learner fits it, how
its ensemble votes.  ``fit.py`` fits the chunks, ``ensemble.py`` is what votes,
``registry.py`` is the table of the classes, each with its ``class_row.py``.  A model is a
function of its own chunk and its own seed.
"""
