"""Two releases for clients of other servers: one of mixed columns, one of numbers alone."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np

from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.builders.server.server_process import ServerProcess

NUMERIC_NAME: Final = "numbers alone"
NUMERIC_CONFIG: Final = f"""\
[release]
name = "{NUMERIC_NAME}"

[data]
source = "numbers.csv"
label = "sum"
classes = ["low", "high"]

[[data.features]]
name = "first"
kind = "numeric"
bounds = [0, 1]

[[data.features]]
name = "second"
kind = "numeric"
bounds = [0, 1]

[hypotheses]
class = "trees"
depth = 1

[privacy]
epsilon = 50
delta = 1e-6

[answers]
queries = 200
cutoff = 5
ensemble = 60
after = "halt"

[server]
port = 0
"""


@contextmanager
def serving_numbers(
    folder: Path, environ: Mapping[str, str] | None = None
) -> Iterator[ServerProcess]:
    """Serve a release of two numbers: above a half of the first is high."""
    generator = np.random.default_rng(5)
    rows = generator.random((600, 2))
    lines = [f"{a},{b},{'high' if a > 0.5 else 'low'}" for a, b in rows.tolist()]
    (folder / "numbers.csv").write_text("\n".join(["first,second,sum", *lines]), encoding="utf-8")
    config = folder / "conclave.toml"
    config.write_text(NUMERIC_CONFIG, encoding="utf-8")
    with serving(config, environ=environ) as server:
        yield server.wait_until_ready()
