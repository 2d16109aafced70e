"""The public encodings of rows, in which hypothesis classes and learners read them.

* ``binary_tests.py`` answers public yes-or-no tests of features, for classes over tests.
* ``cell_codes.py`` has what the tests of each feature say of a row as one number.
* ``public_columns.py`` scales numbers and spreads categories, for scikit-learn's estimators.
* ``row_codes.py`` encodes a row in few bytes, from which each class's encoding follows.
* ``encoded_rows.py`` holds encoded rows, whole or part by part where memory is short.
"""
