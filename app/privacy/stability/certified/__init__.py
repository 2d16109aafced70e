"""The stability test with a table of probabilities whose privacy a certificate proves.

A certificate is a family of numeric functions that are stored with the table. A query is decided as
by the stability test (``app/privacy/stability/mechanism.py``), with another table. For cutoffs T of
at most 5 a stable answer needs fewer votes with this table than with the table of calibration
``profile``.

* ``certified_table.py`` makes and checks the table.
* ``certificate.py`` checks the certificate exactly, in integers.
* ``certificate_search.py`` searches for a certificate, in floating point.
* ``certified_registration.py`` has the mechanism's entry in the table
  ``app/privacy/mechanisms.py``.
"""
