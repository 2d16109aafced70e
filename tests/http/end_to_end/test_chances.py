"""What is said of small releases' chances holds of their votes, and refuses the bad ones."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.vectors import encode, parse_features
from app.ledger.ledger import open_ledger
from app.privacy.voting.votes import tally
from app.release.drawing import read_ensemble
from app.release.terms.configuration import configure
from tests.builders.server.chances import (
    AGREED_PART,
    CHUNK_ROWS,
    FAILURE_MAX,
    Asked,
    chances,
    check_chances,
    split_distances,
)
from tests.builders.server.http_release import ENSEMBLE_SIZE, SmallRelease, agreed, split

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

VECTORS = 6
# A split distance beyond so many deviations has probability 2e-9, and an agreed one
# below its bound even less: 28 of 2,400 learners err on average, and more than 72 would.
DEVIATIONS = 6


def distances(release: SmallRelease, vectors: list[list[object]]) -> list[int]:
    """Return the distances of vectors in a release that is open."""
    configuration = configure(release.settings())
    ledger = open_ledger(release.settings().ledger_url, create=False)
    try:
        ensemble = read_ensemble(configuration, ledger).private_ensemble
    finally:
        ledger.close()
    assert ensemble is not None
    parsed = [parse_features(configuration.schema, vector) for vector in vectors]
    counts = ensemble.vote_counts(encode(configuration.schema, parsed))
    return [each.distance for each in tally(counts)]


@pytest.mark.parametrize("relabel", ["0.3", "0"])
def test_votes_are_as_far_apart_as_they_are_said_to_be(opened: OpenedRelease, relabel: str) -> None:
    """The real learners' distances are within the bounds that the chances are worked out from."""
    release = opened(shares={"relabel": relabel})
    number = range(VECTORS)
    assert min(distances(release, [*map(agreed, number)])) >= int(AGREED_PART * ENSEMBLE_SIZE / 2)
    deviation = sqrt(sum(d * d * share for d, share in enumerate(split_distances(ENSEMBLE_SIZE))))
    assert max(distances(release, [*map(split, number)])) <= DEVIATIONS * deviation


def test_a_release_whose_test_would_fail_by_chance_is_refused(tmp_path: Path) -> None:
    """More epsilon for the answers lets split queries be answered, and less no agreed one."""
    for epsilon, part in (("42", "split"), ("3", "agreed")):
        release = SmallRelease(tmp_path, {"privacy": {"epsilon": epsilon}}).write(
            asked=Asked(agreed=0, split=0)
        )
        relied = {"agreed": Asked(agreed=3, split=0), "split": Asked(agreed=0, split=3)}
        with pytest.raises(AssertionError, match="come to"):
            check_chances(release.settings(), relied.pop(part))
        check_chances(release.settings(), *relied.values())


def test_the_default_release_is_settled(tmp_path: Path) -> None:
    """Both chances of a query are below 3e-8, and all its queries together below the bound."""
    release = SmallRelease(tmp_path).write()
    of_one = chances(release.settings())
    assert of_one is not None
    assert max(of_one.agreed_unstable, of_one.split_answered) < 3e-8
    assert of_one.failure(Asked(agreed=40, split=3)) < FAILURE_MAX


def test_split_distances_are_those_of_dealt_rows() -> None:
    """Rows dealt out by a shuffle give the deviation that the formula gives, to a twentieth."""
    generator, size, deals = np.random.default_rng(5), 400, 2_000
    rare = np.zeros(CHUNK_ROWS * size, dtype=bool)
    rare[: round((1 - 0.5 ** (1 / CHUNK_ROWS)) * len(rare))] = True
    misses = [
        int((~generator.permutation(rare).reshape(size, CHUNK_ROWS).any(axis=1)).sum())
        for _ in range(deals)
    ]
    formula = sqrt(sum(d * d * share for d, share in enumerate(split_distances(size))))
    # The seed is fixed; the deviation of 2,000 deals is known to 1.6% (one sigma).
    assert abs(float(np.std(misses)) / formula - 1) < 0.05
