"""The import path for user-written predictors; the code is in ``app/learning/predictors``.

* ``predictors.py`` passes its public names on.
"""
