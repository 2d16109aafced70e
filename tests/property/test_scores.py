"""What serves scores decides as ``soft_labels.step`` does, word for word of noise.

The model beside it is a loop over the mechanism alone: a state, a list of answers by
vector and precision, and a count of units.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from app.answering.batch_decisions import Batch
from app.answering.queries import Fresh
from app.answering.replays import ReplayIndex
from app.ledger.ledger import RecordedAnswer
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.soft_labels import mechanism as soft_labels
from app.privacy.soft_labels.mechanism import bin_scores
from app.privacy.stability import mechanism as stability
from app.privacy.voting.query_decision import Parameters, Sequel, State
from app.privacy.voting.tallies import PrivateValues, private_tallies
from tests.builders.release.small_release import VotesByMargin, ask, identified

ANSWER_LIMIT = 12
# From nearly certain at a distance of 0 to nearly never beyond 40.
PROFILE = tuple((1 << 64) - 1 >> distance for distance in range(1, 41))
QUESTIONS = st.tuples(st.integers(-50, 50), st.sampled_from((2, 3, 10, 1000)))


def served(
    parameters: Parameters, batches: list[list[tuple[int, int]]], noise: ScriptedNoise
) -> tuple[list[RecordedAnswer | None], int]:
    """Answer batch by batch as the writer does; return the answers and the units used."""
    replays, state = ReplayIndex(), State()
    found: list[RecordedAnswer | None] = []
    for questions in batches:
        asked = [structs.replace(ask(margin), precision=bins) for margin, bins in questions]
        names = [f"{margin}/{precision}".encode() for margin, precision in questions]
        values = np.array([[margin, 0.0] for margin, _ in questions])
        precisions = [precision for _, precision in questions]
        tallies = private_tallies(VotesByMargin(), values, precisions)
        batch = Batch(
            parameters=parameters,
            state=state,
            replays=replays,
            private_values=PrivateValues(names, tallies),
            noise=noise,
        )
        for decision in batch.decide(identified(asked, names)):
            answer = decision.recorded if isinstance(decision, Fresh) else decision
            found.append(answer if isinstance(answer, RecordedAnswer) else None)
        for fresh in batch.fresh:
            replays.add(fresh.vector_digest, fresh.recorded)
        state = batch.state
    return found, state.unstable_count


def modelled(
    parameters: stability.Parameters, batches: list[list[tuple[int, int]]], noise: ScriptedNoise
) -> tuple[list[RecordedAnswer | None], int]:
    """Answer by the mechanism alone."""
    state, known = soft_labels.State(), dict[tuple[int, int], RecordedAnswer]()
    found: list[RecordedAnswer | None] = []
    for question in [each for questions in batches for each in questions]:
        ended = state.hit_count >= parameters.cutoff or len(known) >= ANSWER_LIMIT
        if question in known or ended:
            found.append(known.get(question))
            continue
        margin, precision = question
        scores = (np.arange(100) < 50 + margin).astype(np.float64)
        (value,) = bin_scores(scores[None], [precision])
        following, outcome = soft_labels.step(parameters, state, value, noise)
        released = outcome.released_bin
        label = None if released is None else int(released.midpoint * 2 >= 1)
        stable = released is not None
        known[question] = RecordedAnswer(
            len(known) + 1,
            label,
            stable,
            precision,
            None if released is None else released.index,
            released is not None and released.shifted,
            following.hit_count - state.hit_count,
        )
        state = following
        found.append(known[question])
    return found, state.hit_count


@given(
    batches=st.lists(st.lists(QUESTIONS, min_size=1, max_size=5), max_size=6),
    cutoff=st.integers(1, 5),
    seed=st.integers(0, 1 << 20),
)
def test_served_decisions_are_the_mechanisms(
    batches: list[list[tuple[int, int]]], cutoff: int, seed: int
) -> None:
    """On the same words every answer, every replay and the count of units agree."""
    answering = stability.Parameters(PROFILE, cutoff)
    parameters = Parameters(
        answering,
        class_count=2,
        answer_limit=ANSWER_LIMIT,
        after=Sequel.HALT,
        on_cutoff=Sequel.HALT,
        unstable_gets_coin=False,
        with_scores=True,
    )
    ours, theirs = ScriptedNoise(seeded_words(seed)), ScriptedNoise(seeded_words(seed))
    assert served(parameters, batches, ours) == modelled(answering, batches, theirs)
    assert ours.drawn_count == theirs.drawn_count
