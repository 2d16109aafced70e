"""The stable import path for hypothesis classes (predictors) that users write in Python.

* ``predictors.py`` re-exports the public names of ``app/learning/predictors``, where the code is.
"""
