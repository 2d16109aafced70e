"""Hypothesis classes of predictors that a user wrote in Python.

* ``own_predictors.py`` has the interface of a predictor, and calls it on one row at a time.
* ``predictor_classes.py`` imports predictors by their path, and makes a hypothesis class of them.
* ``class_registration.py`` has the entry of these classes in the table of
  ``app/learning/registry.py``.
"""
