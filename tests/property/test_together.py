"""What is parsed, encoded or decided together is what it is one by one, to the last bit."""

from __future__ import annotations

import hmac
import json
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from app.answering.answers import answer_of, answers_for
from app.answering.batch_decisions import Batch
from app.answering.queries import Asker, Fresh, Query, in_columns
from app.answering.replays import ReplayIndex
from app.data.schema import NumericFeature, Schema
from app.data.vectors import (
    TOGETHER_MIN,
    encode,
    encode_keys,
    parse_features,
    replay_key,
    replay_keys,
)
from app.errors import RequestError, UnavailableError
from app.http.query.query_body import parse_line, parse_lines_of_numbers
from app.http.query.stream import encode_replies
from app.ledger.entries.digests import Digests
from app.ledger.ledger import RecordedAnswer
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.soft_labels.mechanism import PrivateBins
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Parameters, Phase, Sequel, State
from app.privacy.voting.tallies import PrivateValues
from app.privacy.voting.votes import Tallies, tally
from tests.builders.release.small_release import ask, identified
from tests.property.two_scripts import TwoScripts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.answering.batch_decisions import Decision
    from app.answering.queries import IdentifiedQueries
    from app.privacy.mechanism_registration import Answering

NUMBERS = Schema(
    label="y",
    classes=("0", "1"),
    features=tuple(NumericFeature(name=name, lower=-10.0, upper=10.0) for name in "abc"),
    missing=("eight888",),  # in MessagePack as many bytes as a number
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(FLOATS, st.integers(-(2**70), 2**70), st.just(-0.0))
ODD_VALUES = st.one_of(VALUES, st.sampled_from([None, "eight888", "", True, "x", 10**400, [1]]))
ROWS = st.lists(
    st.one_of(
        st.lists(VALUES, min_size=3, max_size=3), st.lists(ODD_VALUES, min_size=2, max_size=4)
    ),
    min_size=1,
    max_size=6,
)
PLAIN_ROWS = st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=6)
# What a client may write that means something else, or nothing.
ODD_LINES = st.sampled_from(
    [
        b'{"features":[1,2,3],"features":[4,5,6]}',
        b'{"features":[1,2,3],"\\u0066eatures":[4,5,6]}',
        b'{"\\u0066eatures":[4,5,6]}',
        b'{"features":[1,2,3],"idempotency_key":"k"}',
        b'{"features":[1,2,3],"precision":null}',
        b'{"features":{"a":1,"b":2,"c":3}}',
        b'{"features":[1,2,3]} {"features":[4,5,6]}',
        b'{"features":[1,2,3]',
        b'{"features":[1e999,2,3]}',
        b'{"features":[NaN,2,3]}',
        b"[]",
        b"\xff",
    ]
)
SIZE = 60
COUNT = TOGETHER_MIN


def many(rows: Sequence[object]) -> list[object]:
    """Return the rows over and over, as many as are parsed together."""
    return [rows[index % len(rows)] for index in range(COUNT)]


def line_by_line(lines: Sequence[bytes]) -> list[Query | str]:
    """Return the query of each line, or the words of its refusal."""
    found: list[Query | str] = []
    for line in lines:
        try:
            found.append(parse_line(NUMBERS, line, with_scores=False))
        except RequestError as refusal:
            found.append(str(refusal))
    return found


@given(ROWS, st.lists(ODD_LINES, max_size=1))
def test_lines_parsed_together_are_those_parsed_one_by_one(
    rows: list[list[object]], odd: list[bytes]
) -> None:
    """Where a window is taken whole, each query is the line's own, signs of zeros included."""
    lines = [json.dumps({"features": row}).encode() for row in many(rows)] + odd
    together = parse_lines_of_numbers(NUMBERS, lines)
    if together is not None:
        found = line_by_line(lines)
        assert together == in_columns([each for each in found if isinstance(each, Query)])


@given(PLAIN_ROWS)
def test_plain_lines_are_taken_together(rows: list[list[object]]) -> None:
    """Numbers in schema order need no second look, whatever they are."""
    lines = [json.dumps({"features": row}).encode() for row in many(rows)]
    assert parse_lines_of_numbers(NUMBERS, lines) is not None


def test_few_lines_are_parsed_one_by_one() -> None:
    """A client that waits for each answer gains nothing from a window."""
    lines = [b'{"features":[1,2,3]}'] * (COUNT - 1)
    assert parse_lines_of_numbers(NUMBERS, lines) is None
    assert parse_lines_of_numbers(NUMBERS, [*lines, lines[0]]) is not None


@given(st.lists(st.one_of(FLOATS, st.sampled_from([None, "eight888", ""])), min_size=3))
def test_many_vectors_are_packed_as_each_is(values: list[object]) -> None:
    """Their canonical bytes and encoded values are those of each vector alone."""
    rows = [parse_features(NUMBERS, values[-3:]), parse_features(NUMBERS, values[:3])]
    vectors = [rows[index % 2] for index in range(COUNT)]
    assert replay_keys(vectors) == list(map(replay_key, vectors))
    alone = np.concatenate([encode(NUMBERS, [vector]) for vector in vectors])
    np.testing.assert_array_equal(encode(NUMBERS, vectors), alone)
    np.testing.assert_array_equal(encode_keys(NUMBERS, replay_keys(vectors)), alone)
    np.testing.assert_array_equal(encode_keys(NUMBERS, replay_keys(vectors[:1])), alone[:1])


@given(st.lists(st.binary(max_size=300)), st.binary(min_size=32, max_size=32))
def test_digests_taken_together_are_the_digest_of_each(vectors: list[bytes], secret: bytes) -> None:
    """They are HMAC-SHA-256 under the database's secret and the tag of vectors, whole or halved."""
    digests = Digests(secret)
    alone = [hmac.digest(secret, b"conclave-vector-1\0" + each, "sha256") for each in vectors]
    assert digests.of_vectors(vectors) == list(map(digests.of_vector, vectors)) == alone


def profile(cutoff: int) -> stability.Parameters:
    """Return a profile from nearly certain hits to rare ones."""
    return stability.Parameters(tuple((1 << 64) - 1 >> step for step in range(1, 12)), cutoff)


def sparse(*, refreshed: bool) -> Callable[[int], sparse_vector.Parameters]:
    """Return sparse vectors with a scale at which some queries are hits."""
    law = DiscreteLaplace(Fraction(3))
    return lambda cutoff: sparse_vector.Parameters(
        threshold=8, threshold_noise=law, query_noise=law, cutoff=cutoff, refreshed=refreshed
    )


def noisy(cutoff: int) -> noisy_vote.Parameters:
    """Return a noisy vote, which has no cutoff."""
    del cutoff
    return noisy_vote.Parameters(
        vote_noise=DiscreteGaussian(Fraction(9)),
        class_count=2,
        ensemble_size=SIZE,
        answer_limit=LIMIT,
    )


LIMIT = 2 * COUNT
MECHANISMS: dict[str, Callable[[int], Answering]] = {
    "profile": profile,
    "one threshold": sparse(refreshed=False),
    "refreshed": sparse(refreshed=True),
    "noisy vote": noisy,
}


def run(
    parameters: Parameters,
    queries: IdentifiedQueries,
    votes: Sequence[int],
    answered: int,
    *,
    seed: int,
    together: bool,
) -> tuple[Sequence[Decision], Batch]:
    """Decide one batch, by one call or by many."""
    noise = TwoScripts(seeded_words(seed), seeded_words(seed + 1))
    state = structs_replace(query_decision.initial_state(parameters, noise), answered)
    counts = np.array([[SIZE - yes, yes] for yes in votes], dtype=np.int64)
    known = ReplayIndex()
    known.add(b"recorded", RecordedAnswer(1, 1, stable=True))
    new = dict.fromkeys(queries.vector_digests)
    new.pop(b"recorded", None)
    values = PrivateValues(list(new), Tallies(counts[: len(new)]))
    batch = Batch(
        parameters=parameters, state=state, replays=known, private_values=values, noise=noise
    )
    if together:
        return batch.decide(queries), batch
    alone = [queries.part(place, place + 1) for place in range(len(queries))]
    return [decision for each in alone for decision in batch.decide(each)], batch


def structs_replace(state: State, answered: int) -> State:
    """Return a first state with answers before it."""
    return State(answered, 0, private_threshold_noise=state.private_threshold_noise)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(
    votes=st.lists(st.integers(0, SIZE), min_size=COUNT, max_size=COUNT),
    extra=st.lists(st.sampled_from([b"0", b"recorded", b"key"]), max_size=2),
    seed=st.integers(0, 1 << 30),
    cutoff=st.sampled_from([1, 2, 5, 40]),
    answered=st.sampled_from([0, COUNT - 1, COUNT + 3]),
    coin=st.booleans(),
    asker=st.sampled_from([None, Asker("a"), Asker("b", answer_limit=3)]),
)
def test_queries_decided_together_are_those_decided_one_by_one(
    mechanism: str,
    votes: list[int],
    extra: list[bytes],
    seed: int,
    cutoff: int,
    answered: int,
    coin: bool,  # noqa: FBT001 -- Hypothesis passes by name
    asker: Asker | None,
) -> None:
    """The same words give the same answers, refusals, states, counts and draws to restore."""
    answering = MECHANISMS[mechanism](cutoff)
    parameters = Parameters(
        answering=answering,
        class_count=2,
        answer_limit=LIMIT,
        after=Sequel.CLASSIFIER,
        on_cutoff=Sequel.HALT,
        unstable_gets_coin=coin,
    )
    names = [str(index).encode() for index in range(COUNT)] + extra
    keys = ["key" if name == b"key" else None for name in names]
    queries = identified([structs.replace(ask(0, key), asker=asker) for key in keys], names)
    (one, alone), (other, both) = (
        run(parameters, queries, [*votes, 3], answered, seed=seed, together=together)
        for together in (False, True)
    )
    assert list(map(describe, one)) == list(map(describe, other))
    assert list(map(describe, alone.fresh)) == list(map(describe, both.fresh))
    assert (alone.state, alone.phase) == (both.state, both.phase)
    assert (alone.key_counts, alone.new_keys) == (both.key_counts, both.new_keys)
    assert alone.fresh_by_vector == both.fresh_by_vector
    assert lines_of(one) == lines_of(other)


def lines_of(decisions: Sequence[Decision]) -> bytes:
    """Return the lines of answers to decisions, with a problem in the place of what is deferred."""
    refusals = [UnavailableError("deferred")] * len(decisions)
    vectors = [b""] * len(decisions)
    told = answers_for(decisions, vectors, NUMBERS, lambda deferred: refusals[: len(deferred)])
    return encode_replies(told)


LABELS = st.lists(st.text(max_size=9), min_size=2, max_size=4, unique=True)
RECORDED = st.lists(st.tuples(st.integers(0, 2**63), st.integers(-1, 1), st.booleans()))


@given(LABELS, RECORDED)
def test_lines_written_together_are_those_of_the_encoder(
    labels: list[str], recorded: list[tuple[int, int, bool]]
) -> None:
    """Whatever the classes are called, each line is what the encoder makes of the answer."""
    schema = Schema(label="y", classes=tuple(labels), features=NUMBERS.features)
    given = [
        RecordedAnswer(number, None if label < 0 else label, stable)
        for number, label, stable in recorded
    ]
    answers = [answer_of(each, schema, replayed=False) for each in given]
    expected = b"".join(msgspec.json.encode(answer) + b"\n" for answer in answers)
    assert encode_replies(answers) == expected


def describe(decision: Decision) -> str:
    """Return all of a decision but how many answers came before its epoch's state."""
    if not isinstance(decision, Fresh):
        return f"{type(decision)} {decision}"
    states = (decision.drawn_in, decision.following)
    epochs = [(each.unstable_count, each.private_threshold_noise) for each in states]
    return f"{decision.vector_digest!r} {decision.asker} {decision.recorded} {epochs}"


def test_queries_side_by_side_are_those_one_by_one() -> None:
    """Columns that a stream's lines make, and parts of them, hold the same queries and askers."""
    asker = Asker("a")
    lines = [b'{"features":[%d,-0.0,2.5]}' % number for number in range(COUNT)]
    queries = parse_lines_of_numbers(NUMBERS, lines, asker=asker)
    alone = [parse_line(NUMBERS, line, with_scores=False, asker=asker) for line in lines]
    assert queries == in_columns(alone)
    assert queries.part(2, 4) == queries.at([2, 3]) == in_columns(alone[2:4])
    assert queries.part(0, 3).followed_by([queries.part(3, 4), queries.part(4, COUNT)]) == queries


@pytest.mark.parametrize("other", ["key", "scores", "limit"])
def test_what_more_than_a_vector_decides_is_left_alone(
    other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key or a limit of one query, or scores, keep a batch from being decided together."""
    monkeypatch.delattr(query_decision, "steps")
    limited = structs.replace(ask(0), asker=Asker("c", unstable_limit=9))
    last = {"key": ask(0, "key"), "scores": ask(0), "limit": limited}[other]
    names = [str(index).encode() for index in range(COUNT)]
    votes = Tallies(np.array([[0, SIZE]] * COUNT, dtype=np.int64))
    bins = [PrivateBins(10, (9, 0), (10, 0))] * COUNT
    batch = Batch(
        parameters=Parameters(
            profile(5),
            2,
            LIMIT,
            Sequel.HALT,
            Sequel.HALT,
            unstable_gets_coin=False,
            with_scores=other == "scores",
        ),
        state=State(),
        replays=ReplayIndex(),
        private_values=PrivateValues(names, bins if other == "scores" else votes),
        noise=ScriptedNoise(seeded_words(1)),
    )
    assert len(batch.decide(identified([*[ask(0)] * (COUNT - 1), last], names))) == COUNT


def test_a_window_of_new_vectors_is_decided_together() -> None:
    """The stability test draws all its words in one call, and the others one by one."""
    counts = np.array([[0, SIZE]] * COUNT, dtype=np.int64)
    for name, make in MECHANISMS.items():
        parameters = Parameters(
            make(5), 2, LIMIT, Sequel.HALT, Sequel.HALT, unstable_gets_coin=False
        )
        noise = ScriptedNoise(seeded_words(1))
        state = query_decision.initial_state(parameters, noise)
        answered = query_decision.steps(parameters, state, Tallies(counts), noise)
        assert (answered is not None) is (name == "profile")


def test_what_is_decided_together_ends_at_the_limit() -> None:
    """With hits at every word the T-th ends the run, and beyond it nothing is decided."""
    parameters = Parameters(
        stability.Parameters(((1 << 64) - 1,), 3),
        2,
        100,
        Sequel.HALT,
        Sequel.HALT,
        unstable_gets_coin=False,
    )
    votes = Tallies(np.array([[0, SIZE]] * COUNT, dtype=np.int64))
    answered = query_decision.steps(parameters, State(), votes, ScriptedNoise([0] * COUNT))
    assert answered is not None
    state, outcomes = answered
    assert (state, len(outcomes)) == (State(3, 3), 3)
    assert query_decision.phase(parameters, state) is Phase.HALTED


@given(st.lists(st.lists(st.integers(0, 99), min_size=3, max_size=3), min_size=1))
def test_tallies_are_the_tally_of_each(votes: list[list[int]]) -> None:
    """Side by side or one by one, votes come to the same."""
    counts = np.array(votes, dtype=np.int64)
    assert list(Tallies(counts)) == tally(counts)
    assert list(Tallies(counts)[1:]) == tally(counts)[1:]
    assert Tallies(counts)[-1] == tally(counts)[-1]
