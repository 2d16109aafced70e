"""A release of 1000 linear models on 14 numbers, and as many new vectors as are asked for.

The label is the sign of a fixed linear form with noise, so that 1000 logistic
regressions, one a chunk, agree on every vector that lies well off the plane.  Vectors are
drawn there, so that none is unstable: what is measured is an answer, not the end of the
budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

MODEL_COUNT: Final = 1000
FEATURE_COUNT: Final = 14
CHUNK_ROWS: Final = 30
NOISE_DEVIATION: Final = 0.3
OFF_THE_PLANE: Final = 1.5
BOUND: Final = 4
SEED: Final = 14
VECTOR_SEED_STEP: Final = 1_000_003

TEMPLATE = """\
[release]
name = "linear"
[data]
source = "rows.npz"
label = "answer"
classes = ["no", "yes"]
{features}
[hypotheses]
class = "stumps"
bins = 4
[learner]
estimator = "sklearn.linear_model.LogisticRegression"
params = {{ max_iter = 50 }}
[privacy]
epsilon = 8
delta = 1e-6
[privacy.shares]
relabel = 0
answers = {answers}
classifier = {classifier}
[answers]
queries = {queries}
cutoff = 5
reply_padding_milliseconds = 0
ensemble = {size}
after = "{after}"
[server]
port = 0
"""
FEATURE = '[[data.features]]\nname = "{name}"\nkind = "numeric"\nbounds = [-{bound}, {bound}]\n'


def open_linear_release(
    folder: Path, *, queries: int = 10**9, after: str = "halt", size: int = MODEL_COUNT
) -> Path:
    """Open the release, so that a server starts from fitted models; return its configuration.

    Args:
        folder: an empty one, where its rows and its ledger go as well.
        queries: answers until the ensemble stops.
        after: what follows, ``halt`` or ``classifier``.
        size: how many models.

    """
    folder.mkdir(exist_ok=True)
    names = [f"f{index}" for index in range(FEATURE_COUNT)]
    generator = np.random.default_rng(SEED)
    rows = generator.normal(size=(size * CHUNK_ROWS, FEATURE_COUNT))
    noise = generator.normal(0, NOISE_DEVIATION, len(rows))
    is_yes = rows @ _plane() + noise > 0
    columns: Mapping[str, NDArray[np.generic]] = {
        name: rows[:, index] for index, name in enumerate(names)
    }
    np.savez(folder / "rows.npz", answer=np.where(is_yes, "yes", "no"), **columns)  # type: ignore[arg-type]  # columns by name
    config = folder / "conclave.toml"
    shares = (
        {"answers": 1, "classifier": 0} if after == "halt" else {"answers": 0.6, "classifier": 0.4}
    )
    text = TEMPLATE.format(
        features="".join(FEATURE.format(name=name, bound=BOUND) for name in names),
        queries=queries,
        size=size,
        after=after,
        **shares,
    )
    config.write_text(text, encoding="utf-8")
    open_from_settings(load_settings(config, {}), noise=SystemNoise()).ledger.close()
    return config


def new_vectors(count: int, *, part: int) -> NDArray[np.float64]:
    """Return vectors off the plane, with four decimals, shape ``(count, 14)``.

    Args:
        count: how many.
        part: another one gives other vectors.

    """
    generator = np.random.default_rng(SEED + VECTOR_SEED_STEP * (part + 1))
    vectors = generator.normal(size=(count, FEATURE_COUNT))
    plane = _plane()
    along = vectors @ plane
    shift = np.where(along >= 0, OFF_THE_PLANE, -OFF_THE_PLANE)
    return np.round(vectors + shift[:, np.newaxis] * plane, 4)


def bodies(count: int, *, part: int) -> list[bytes]:
    """Return the bodies of ``POST /query`` for new vectors."""
    return [
        b'{"features":[' + ",".join(map(str, vector)).encode() + b"]}"
        for vector in new_vectors(count, part=part).tolist()
    ]


def _plane() -> NDArray[np.float64]:
    plane = np.random.default_rng(SEED).normal(size=FEATURE_COUNT)
    return plane / np.linalg.norm(plane)
