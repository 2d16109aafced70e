"""Everything that a release draws comes from the operating system's generator.

That generator is replaced by a stream that is known.  Two releases on the same stream
then agree in every private piece, entry and answer, so nothing else has drawn; on
another stream they differ in each.
"""

from __future__ import annotations

import hashlib
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from app.ledger.ledger import open_ledger
from app.noise.system import SystemNoise
from app.release.opening import open_release
from app.release.progress import no_progress
from tests.builders.release.opened_release import pieces
from tests.builders.release.small_release import RowAnswerer, SmallRelease, ask, private_rows
from tests.builders.release.svt_release import NOISY_VOTE, REFRESHED, SVT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

CASES: dict[str, Mapping[str, str]] = {
    "stability test": {},
    "coin": {"answers__unstable": "coin"},
    "one threshold": SVT,
    "refreshed": REFRESHED,
    "noisy vote": NOISY_VOTE,
    "halving": {"learner__rule": "halving"},
    "estimator": {"learner__estimator": "sklearn.linear_model.SGDClassifier"},
}
# Distinct on any two streams: secrets, and orders of sixty rows.
DRAWN_APART = ("release-secret", "permutation")


def known_stream(name: str) -> Callable[[int], bytes]:
    """Return what gives the same bytes, call by call, for the same name."""
    calls = count()

    def urandom(byte_count: int) -> bytes:
        stream = hashlib.shake_256(f"{name} {next(calls)}".encode())
        return stream.digest(byte_count)

    return urandom


def run(folder: Path, changes: Mapping[str, str]) -> tuple[object, ...]:
    """Open a release with the production source, ask it four queries, and return all of it."""
    folder.mkdir()
    release, noise = SmallRelease(folder, changes), SystemNoise()
    opened = open_release(
        release.configuration(),
        ledger=open_ledger(f"sqlite:///{folder / 'conclave.db'}", create=True, noise=noise),
        rows=private_rows(),
        noise=noise,
        progress=no_progress,
    )
    answerer = RowAnswerer(opened, noise)
    decisions = answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
    entries = opened.ledger.public_entries(0, 100)
    opened.ledger.close()
    return pieces(release), entries, [str(decision) for decision in decisions]


@pytest.mark.parametrize("case", CASES)
def test_the_systems_generator_determines_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """On one stream two releases are one, and on another nothing drawn is the same."""
    results = []
    for number, stream in enumerate(("first", "first", "second")):
        with monkeypatch.context() as patched:
            system = SimpleNamespace(urandom=known_stream(stream))
            patched.setattr("app.noise.system.os", system)
            results.append(run(tmp_path / str(number), CASES[case]))
    assert results[0] == results[1]
    first, other = results[0][0], results[2][0]
    assert isinstance(first, dict)
    assert isinstance(other, dict)
    assert set(first) == set(other)
    assert all(first[name] != other[name] for name in DRAWN_APART)
