"""Faults planted in whole servers: each a double of a few lines, put in by a test.

A fault may need the votes of the query that was asked last; ``Votes`` keeps them as the
evaluation of the ensemble gives them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from app import main
from app.answering import answer_query
from app.answering import service as conclave_service
from app.answering.answer_query import QueryAnswerer
from app.http import problems
from app.learning.chunks import chunk_offsets
from app.learning.ensemble import fit_ensemble
from app.ledger import ledger as store
from app.ledger.entries import fold
from app.ledger.entries.chain import public_entry
from app.noise.system import SystemNoise
from app.privacy.exponential import relabel
from app.privacy.voting import query_decision
from app.privacy.voting.tallies import private_tallies
from app.release import drawing as draw_ensemble
from app.release import release
from app.release.views.budget import Budget, ReleaseName, budget_view

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from numpy.typing import NDArray

    from app.answering.batch_decisions import Batch
    from app.noise.source import NoiseSource
    from app.privacy.voting.query_decision import Outcome, Parameters, State
    from app.privacy.voting.votes import Tallies, Tally
    from app.release.drawing import SampledRows

    Plant = Callable[[pytest.MonkeyPatch], None]

HALF_WORD = 1 << 63


def no_noise(patch: pytest.MonkeyPatch) -> None:
    """Decide every query by the same word."""

    class Still(SystemNoise):
        def word(self) -> int:
            return HALF_WORD

        def words(self, count: int) -> list[int]:
            return [HALF_WORD] * count

    patch.setattr(main, "SystemNoise", Still)


def record_in_two_chunks(patch: pytest.MonkeyPatch) -> None:
    """Put the record that differs, the only one of class 0, in the place of another too."""

    def fit(
        learner: Any, values: Any, labels: NDArray[np.int64], *, permutation: Any, **options: Any
    ) -> Any:
        record, places = int(labels.argmin()), permutation.copy()
        places[(int(np.flatnonzero(places == record)[0]) + 1) % len(places)] = record
        return fit_ensemble(learner, values, labels, permutation=places, **options)

    patch.setattr(draw_ensemble, "fit_ensemble", fit)


def rows_cut_apart(patch: pytest.MonkeyPatch) -> None:
    """Cut rows into chunks where persons should be cut, so that one may be in all of them."""

    def cut(
        self: SampledRows, places: NDArray[np.int64], *, size: int, count_max: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert count_max is None
        positions, _ = self.rows.positions(self.units[places])
        return positions, chunk_offsets(len(positions), size)

    patch.setattr(draw_ensemble.SampledRows, "cut", cut)


def relabelling_without_noise(patch: pytest.MonkeyPatch) -> None:
    """Draw the labelling hypothesis at a thousand times its epsilon."""
    real = relabel.draw

    def draw(parameters: Any, *given: Any) -> object:
        return real(
            replace(parameters, epsilon=1000 * parameters.epsilon, account_epsilon=None), *given
        )

    patch.setattr(relabel, "draw", draw)


def label_of_votes(patch: pytest.MonkeyPatch) -> None:
    """Give an unstable answer the plurality as its label."""
    real, real_together = query_decision.step, query_decision.steps

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        following, outcome = real(parameters, state, value, noise)
        return following, replace(outcome, label=value.plurality)

    def steps(
        parameters: Parameters, state: State, private_votes: Tallies, noise: NoiseSource
    ) -> tuple[State, list[Outcome]] | None:
        answered = real_together(parameters, state, private_votes, noise)
        if answered is None:
            return None
        following, outcomes = answered
        labels = private_votes.plurality.tolist()
        told = zip(outcomes, labels, strict=False)
        return following, [replace(outcome, label=label) for outcome, label in told]

    patch.setattr(query_decision, "step", step)
    patch.setattr(query_decision, "steps", steps)


def counter_lost_at_restart(patch: pytest.MonkeyPatch) -> None:
    """Start every process with a count of no hits; let the ledger not notice."""
    known: dict[str, int] = {}
    begin, real = release.Release.__post_init__, release._answering_state

    def forget(self: release.Release) -> None:
        assert self.state.release is not None
        known[self.state.release.release_id] = self.state.unstable
        begin(self)

    def state_since(state: Any, noise: int | None) -> State:
        given = real(state, noise)
        return replace(given, unstable_count=state.unstable - known[state.release.release_id])

    patch.setattr(release.Release, "__post_init__", forget)
    patch.setattr(release, "_answering_state", state_since)
    patch.setattr(fold, "allow", lambda *_: None)


def charged_after_speaking(patch: pytest.MonkeyPatch) -> None:
    """Record each batch with the next one, which may never come."""
    late: dict[int, Batch] = {}
    real = QueryAnswerer._append

    def append(self: QueryAnswerer, transaction: Any, batch: Batch) -> None:
        if id(self) in late:
            real(self, transaction, late.pop(id(self)))
        if batch.fresh:
            late[id(self)] = batch

    patch.setattr(QueryAnswerer, "_append", append)
    patch.setattr(fold, "allow", lambda *_: None)


class Votes:
    """What the ensemble said of the last query, for a fault to tell."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Listen to every evaluation."""
        self.told = "none"

        def tallies(*given: Any) -> Any:
            values = private_tallies(*given)
            self.told = repr(values[-1])
            return values

        patch.setattr(answer_query, "private_tallies", tallies)


def error_of_votes(patch: pytest.MonkeyPatch) -> None:
    """Let every refusal end with the votes on the last query."""
    votes, real = Votes(patch), problems._public_text
    patch.setattr(problems, "_public_text", lambda text: f"{real(text)} {votes.told}")


def entry_of_votes(patch: pytest.MonkeyPatch) -> None:
    """Let every entry of the ledger show the votes on the last query."""
    votes = Votes(patch)
    patch.setattr(store, "public_entry", lambda entry: public_entry(entry) | {"more": votes.told})


def budget_of_votes(patch: pytest.MonkeyPatch) -> None:
    """Let the budget show the votes on the last query."""
    votes = Votes(patch)

    def telling(*at: Any) -> Budget:
        return budget_view(*at).model_copy(update={"release": ReleaseName(name=votes.told)})

    patch.setattr(conclave_service, "budget_view", telling)


def no_votes(patch: pytest.MonkeyPatch) -> None:
    """Fail where votes are cast."""

    def fail(*_: Any) -> None:
        raise RuntimeError

    patch.setattr(answer_query, "private_tallies", fail)
