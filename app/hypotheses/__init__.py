"""The stable import path for predictors (functions from a row to a label) that users write.

* ``predictors.py`` re-exports what users need from ``app/learning/predictors``, where the code is.
"""
