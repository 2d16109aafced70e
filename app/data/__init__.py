"""The public schema, feature vectors and private rows; ``sources/`` has the readers of files.

* ``schema.py`` has the schema: features with bounds or categories, and the label's classes.
* ``schema_columns.py`` gives the schema's features in the form that learners take.
* ``validate.py`` is the door for the folders above: it passes on the check of posted vectors, and
  describes the schema for ``GET /schema``.
* ``vectors.py`` does that check, makes a vector's replay key, and encodes vectors as numbers,
  clipped to their bounds.
* ``field_values.py`` reads one value of a row as text, number or boolean, whatever its type.
* ``rows.py`` has the private rows once they are encoded, and their fingerprint, a keyed digest.
* ``persons.py`` has whom rows are about, where a column names it, and the weights of their rows.
* ``person_digests.py`` computes keyed digests of many identifiers at once.
* ``feature_tests.py`` makes the public tests of a schema.  A test is a yes-or-no question about one
  feature, as ``age >= 40``, and no unit test.
* ``cell_tests.py`` reads a public partition into cells from tests in words.
* ``public_points.py`` reads public points from a CSV.
* ``demo_data.py`` generates the rows and queries of ``conclave demo``.
* ``checks/`` reports rows that do not fit.
* ``plane/`` packs and counts rows part by part, in threads or on a cluster, for an opening that
  streams.
"""
