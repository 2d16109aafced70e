"""An opening's memory and work grow with its rows, and not faster."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from app.learning.encoding.binary_tests import PackedTests
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import FEATURE_COUNT, SOURCES, write_release

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

FEW, MANY = 1 << 17, 1 << 18
ROW_BYTES = 8 * FEATURE_COUNT
COPIES_MAX = 3
SPARE_BYTES = 300_000_000
MILLION = 1_000_000


def opened(folder: Path, rows: int) -> int:
    """Open a release on so many rows; return the most bytes that it held at once."""
    folder.mkdir()
    config = write_release(folder, source="npz", rows=rows, size=100)
    tracemalloc.start()
    try:
        open_from_settings(load_settings(config, {}), noise=SystemNoise()).ledger.close()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_further_row_costs_three_times_its_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the rows take at most 192 bytes a row more, and each row is encoded three times."""
    # Allocations and encodings are counted, not timed: no run differs from another by more
    # than what the interpreter itself allocates.
    counts = []
    real = PackedTests.evaluate

    def counting(self: PackedTests, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        counts.append(len(values))
        return real(self, values)

    opened(tmp_path / "first", 1000)  # what is imported and cached once
    monkeypatch.setattr(PackedTests, "evaluate", counting)
    few = opened(tmp_path / "few", FEW)
    encoded_few = sum(counts)
    many = opened(tmp_path / "many", MANY)
    encoded_many = sum(counts) - encoded_few
    assert (many - few) / (MANY - FEW) <= COPIES_MAX * ROW_BYTES
    # Merged for the draw, labelled by it, and fitted; what is made up does not grow with n.
    assert encoded_many - encoded_few <= 3.1 * (MANY - FEW)


@pytest.mark.long
@pytest.mark.parametrize("source", SOURCES)
def test_a_million_rows_open_within_a_minute_and_their_memory(
    tmp_path: Path, repository: Path, source: str
) -> None:
    """Of any source, by the processor's minute and the kernel's count of memory."""
    config = write_release(tmp_path, source=source, rows=MILLION, size=1000)
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.measuring.opening_once", str(config)],
        cwd=repository,
        stdout=subprocess.PIPE,
        check=True,
        timeout=170,
    )
    opening = json.loads(ended.stdout.splitlines()[-1])
    assert opening["processor_seconds"] <= 60
    assert opening["peak_bytes"] <= COPIES_MAX * MILLION * ROW_BYTES + SPARE_BYTES
