"""The stability test with a table of probabilities whose privacy a certificate proves.

The step is that of calibration ``profile``, ``app/privacy/stability/mechanism.py``; the table
is another one, and with T of 5 at most it needs fewer votes.

* ``certified_table.py`` makes and checks the table that serves.
* ``certificate.py`` decides the theorem's conditions, in integers.
* ``certificate_search.py`` finds a certificate and the pairs that it accepts, in doubles.
* ``certified_row.py`` is its row of ``app/privacy/mechanisms.py``.
"""
