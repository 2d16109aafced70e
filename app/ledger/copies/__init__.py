"""Copies of a ledger: ``conclave ledger copy``, row by row, resumed where it stopped."""
