"""The path from which users' own predictors import; the code is in ``app/learning/predictors``.

* ``predictors.py`` passes its public names on.
"""
