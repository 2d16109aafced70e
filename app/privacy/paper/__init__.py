"""The parameters that the research papers print (with errors corrected), and their theorems.

* ``paper.py`` computes the parameters as printed.
* ``paper_pipeline.py`` makes them usable in a release, as calibration ``paper``, and checks them.
* ``sample_complexity_theorems.py`` computes the numbers of rows that the theorems require.
* ``answering_registration.py`` has the mechanism's entry in the table
  ``app/privacy/mechanisms.py``.
"""
