"""The stable import path for predictors (functions from a row to a label) that users write.

* ``predictors.py`` re-exports the public names of ``app/learning/predictors``, where the code is.
"""
