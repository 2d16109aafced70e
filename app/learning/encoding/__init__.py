"""The public encodings of rows for learners.

* ``binary_tests.py`` answers public yes-or-no tests of features, for classes over tests.
* ``public_columns.py`` scales numbers and spreads categories, for scikit-learn's estimators.
* ``encoded_rows.py`` holds encoded rows, whole or part by part where memory is short.
"""
