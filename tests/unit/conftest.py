"""Closes every ledger that a test opened, and gives each test a folder with a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders.release.small_release import SmallRelease
from tests.unit.ledger.conftest import _ledgers_are_closed, postgresql

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["_ledgers_are_closed", "postgresql"]


@pytest.fixture
def small_release(tmp_path: Path) -> SmallRelease:
    """Return the release of a temporary folder, yet to be opened."""
    return SmallRelease(tmp_path)
