"""Reading and counting of private rows part by part, so that only counts are combined.

Whatever an opening needs of many rows is a pure function of one part, and a sum over parts that
does not depend on their order.  Rows of a part stay where the part was read.

* ``summaries.py`` reads a part, packs its rows into bytes, and sums up what must be known of it;
  ``row_sums.py`` has the fingerprint of the rows, as a sum.
* ``person_numbers.py`` merges the persons of parts: a number for each, and how many rows it has.
* ``placed_rows.py`` puts packed rows into chunks by their slots, with the labels that they take.
* ``chunk_samples.py`` takes a sample of each chunk, for learners that need rows themselves.
* ``part_computations.py`` has the counts that trees follow from.
* ``engine.py`` says what an engine does; ``local_engine.py`` does it in threads of this process,
  ``dask_engine.py`` on the workers of a cluster.
* ``streamed_rows.py`` stands for the private rows of a release in the opening.
"""
