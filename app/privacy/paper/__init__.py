"""The parameters that the research papers print (with errors corrected), and their theorems.

The papers are Nandi and Bassily 2020, and Bassily, Thakkar, Thakurta 2018; the theorem on
statistics is that of Bassily, Cheu, Moran, Nikolov, Ullman, Wu 2020.

* ``paper.py`` computes the parameters as printed.
* ``paper_pipeline.py`` has relabelling and answers with these parameters (calibration ``paper``),
  and the exact check of their privacy.
* ``sample_complexity_theorems.py`` computes the numbers of rows that the theorems require.
* ``answering_registration.py`` has the entry of calibration ``paper`` in the table
  ``app/privacy/mechanisms.py``.
"""
