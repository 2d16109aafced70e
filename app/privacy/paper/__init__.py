"""The parameters that the research papers print (with errata), and their theorems.

* ``paper.py`` has the parameters as printed.
* ``paper_pipeline.py`` makes them serve as calibration ``paper``, each one checked.
* ``sample_complexity_theorems.py`` has the numbers of rows that the theorems ask for.
* ``answering_row.py`` is its row of ``app/privacy/mechanisms.py``: calibrate, check, step, explain.
"""
