"""What users import to write predictors (functions from a row to a label), at a lasting path.

* ``predictors.py`` re-exports what users need from ``app/learning/predictors``, where the code is.
"""
