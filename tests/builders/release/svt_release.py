"""The small release in calibration ``svt``, its noise prescribed once it is open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.noise.scripted import ScriptedNoise
from app.privacy.sparse_vector import mechanism as sparse_vector
from tests.builders.mechanisms.prescribed import PrescribedLaplace
from tests.builders.release.small_release import RowAnswerer, SmallRelease, VotesByMargin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from app.ledger.ledger import Ledger
    from app.privacy.voting.query_decision import Parameters

SVT = {"privacy__calibration": "svt"}
CERTIFIED = {"privacy__calibration": "certified"}
# A budget and a cutoff at which the refreshed variant has the smaller threshold.
MANY_HITS = {"privacy__epsilon": "50", "privacy__delta": "0.1", "answers__queries": "1000"}
REFRESHED = {**SVT, **MANY_HITS, "answers__cutoff": "120"}
NOISY_VOTE = {"answers__mechanism": "noisy-vote"}
NOISY_COUNTS = {**NOISY_VOTE, "data__classes": '["no", "yes", "maybe"]'}
"""With a third label, which no row has, noise is added to every count."""
HIT, RELEASED = -(10**6), 10**6
"""Noise of a query with which it is a hit, or released, whatever its votes."""


def changed(release: SmallRelease, changes: Mapping[str, str]) -> SmallRelease:
    """Return the same folder with other settings."""
    return SmallRelease(release.folder, {**release.changes, **changes})


def svt_answerer(
    release: SmallRelease,
    query_noise: Iterable[int] = (),
    threshold_noise: Iterable[int] = (),
    *,
    ledger: Ledger | None = None,
) -> RowAnswerer:
    """Open or continue a release of calibration ``svt`` with votes by margin.

    Args:
        release: whose settings ask for it.
        query_noise: what queries draw from now on; nothing else can be drawn.
        threshold_noise: what hits draw for the threshold.
        ledger: in place of one that works.

    """
    opened = release.open(ledger=ledger)
    if opened.private_ensemble is not None:
        opened.private_ensemble = VotesByMargin()
    answering = opened.mechanism.answering
    assert isinstance(answering, sparse_vector.Parameters)
    prescribed = replace(
        answering,
        query_noise=PrescribedLaplace(query_noise),
        threshold_noise=PrescribedLaplace(threshold_noise),
    )
    opened.mechanism = replace(opened.mechanism, answering=prescribed)
    return RowAnswerer(opened, ScriptedNoise([]))


def threshold_of(parameters: Parameters) -> int:
    """Return w."""
    assert isinstance(parameters.answering, sparse_vector.Parameters)
    return parameters.answering.threshold
