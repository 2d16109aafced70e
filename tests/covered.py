"""Measures branches in every process of pytest: ``-p tests.covered``, for ``make coverage``."""

from __future__ import annotations

from coverage import Coverage

MEASURED = Coverage(data_suffix=True)
MEASURED.start()  # before any module of the application is imported


def pytest_unconfigure() -> None:
    """Leave what this process took, to be combined."""
    MEASURED.stop()
    MEASURED.save()
