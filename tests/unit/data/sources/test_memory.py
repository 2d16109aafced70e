"""Reading takes about rows x features x 8 bytes, however large the source is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

if TYPE_CHECKING:
    from pathlib import Path

ROW_COUNT = 1_000_000
PART_COUNT = 4
FEATURE_COUNT = 10
SPARE_BYTES = 300 * 2**20

# Reads in a process of its own.  Its peak is asked of the kernel by VmHWM, since ru_maxrss
# begins with what the process was forked from.
SCRIPT = """
import json, re, sys
from pathlib import Path
from app.data.rows import fingerprint
from app.data.schema import NumericFeature, Schema
from app.data.sources.sources import read_rows
names = json.loads(sys.argv[2])
features = tuple(NumericFeature(name=name, lower=0.0, upper=0.5) for name in names)
schema = Schema(label="label", classes=("no", "yes"), features=features)
rows = read_rows(sys.argv[1], schema, rows_expected=int(sys.argv[3]))
fingerprint(rows, b"key")
status = Path("/proc/self/status").read_text()
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024)
"""


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]]:
    """Return the columns of one part."""
    generator = np.random.default_rng(5)
    count = ROW_COUNT // PART_COUNT
    numbers = {f"x{index}": generator.random(count) for index in range(FEATURE_COUNT)}
    return numbers | {"label": generator.choice(["no", "yes"], count)}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is asked of Linux")
@pytest.mark.parametrize("kind", ["parts", "npz"])
def test_a_million_rows_are_read_in_their_own_memory(
    tmp_path: Path, columns: dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]], kind: str
) -> None:
    """The peak, the fingerprint's copy included, stays within 300 MB of the rows themselves."""
    source = tmp_path / "rows.npz"
    if kind == "npz":
        np.savez(source, **{name: np.tile(array, PART_COUNT) for name, array in columns.items()})  # type: ignore[arg-type]  # columns are no options
    else:
        source = tmp_path / "parts"
        source.mkdir()
        for number in range(PART_COUNT):
            parquet.write_table(pa.table(columns), source / f"part-{number}.parquet")
    names = [name for name in columns if name != "label"]
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(source), json.dumps(names), str(ROW_COUNT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < ROW_COUNT * FEATURE_COUNT * 8 + SPARE_BYTES
