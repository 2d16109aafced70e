"""The papers' own parameters, as printed after the errata, and their theorems on rows.

* ``paper.py`` has the parameters as printed.
* ``paper_pipeline.py`` makes them serve as calibration ``paper``, each one checked.
* ``row_theorems.py`` has the numbers of rows that the theorems ask for.
* ``answering_row.py`` is its row of ``app/privacy/mechanisms.py``: calibrate, check, step, explain.
"""
