"""The public encodings of rows that hypothesis classes and learners use as input.

* ``binary_tests.py`` evaluates public yes-or-no tests of features, for example age >= 40.
* ``feature_codes.py`` encodes each feature value as one integer, from which the outcomes of all
  tests of this feature follow.
* ``public_columns.py`` scales numbers and one-hot encodes categories, for scikit-learn estimators.
* ``row_codes.py`` packs a whole row into a few bytes, for rows that are read in parts; a hypothesis
  class computes its inputs, for example the outcomes of its tests, from these bytes.
* ``encoded_rows.py`` has encoded rows as one array, or block by block if memory is short.
"""
