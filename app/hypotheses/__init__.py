"""The import path for predictors of users; the code is in ``app/learning/predictors``.

* ``predictors.py`` passes its public names on.
"""
