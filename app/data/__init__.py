"""The public schema, feature vectors and private rows; ``sources/`` has the readers of files.

* ``schema.py`` has the schema: features with bounds or categories, and the label's classes.
* ``schema_columns.py`` gives the schema's features in the form that learners accept.
* ``vectors_and_schema.py`` is the entry point for ``app/http``, which must not import the readers
  of private rows. It offers the check of posted vectors in ``vectors.py``, and describes the schema
  for ``GET /schema``.
* ``vectors.py`` checks posted vectors, makes the bytes by which a repeated query is recognised, and
  encodes vectors as numbers, clipped to their bounds.
* ``field_values.py`` reads one value of a row as text, number or boolean, whatever its stored type.
* ``rows.py`` has the encoded private rows, and their fingerprint, a keyed digest.
* ``persons.py`` has the person of each row, if a column names persons, and the weight of each row
  in sums.
* ``person_digests.py`` computes keyed digests of many identifiers at once.
* ``feature_tests.py`` makes the public tests of a schema. A test is a yes-or-no question about one
  feature, for example ``age >= 40``; it is not a unit test.
* ``cell_tests.py`` reads a public division of the feature space, written as a list of tests.
* ``public_points.py`` reads public points (feature vectors without protection) from a CSV file.
* ``demo_data.py`` generates the rows and queries of ``conclave demo``.
* ``checks/`` reports rows that do not fit the schema.
* ``streaming/`` reads, encodes and counts rows block by block, in threads or on a cluster, for
  sources that are larger than memory.
"""
