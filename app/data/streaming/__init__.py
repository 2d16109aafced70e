"""Reading and counting of private rows in parts, so that only counts are combined.

A part is a file of the source, or a section of a file. The counts and sums that a release needs
when it opens are computed for each part separately and then added up; the order of the parts has no
effect. Rows stay in the processes that read the parts, and are moved at most once, between these
processes, so that all rows of a chunk are in one process.

* ``part_summaries.py`` reads a part, packs its rows into bytes, and computes a summary of them.
  ``fingerprint_sums.py`` computes the fingerprint of the rows, as a sum over all rows.
* ``person_numbers.py`` combines the persons of all parts: a number for each person, and the number
  of the person's rows.
* ``placed_rows.py`` assigns packed rows to chunks, and relabels them if relabelling is configured.
* ``chunk_samples.py`` takes a sample of each chunk, for learners that are trained on rows instead
  of counts.
* ``part_counts.py`` has the counts from which trees are trained or drawn.
* ``engine.py`` has the interface of an engine, which reads and counts parts. ``local_engine.py``
  does it in threads of this process, and ``dask_engine.py`` on the workers of a cluster.
* ``streamed_rows.py`` has the object that stands for all private rows of a release, and counts
  them part by part.
"""
