"""Every mechanism, with what the batteries need to run it.

A new mechanism module is added here; ``test_completeness`` fails until it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from app.learning.trees.tree_class import TreeClass
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import seeded_words
from app.privacy.exponential import mechanism as exponential
from app.privacy.exponential import relabel, scored_tree, semi_private
from app.privacy.noisy_vote import bit_vote
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.soft_labels import mechanism as soft_labels
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability
from app.privacy.stability.certified.certified_registration import CertifiedParameters
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Sequel
from app.privacy.voting.votes import Tally
from tests.builders.mechanisms.drawing import parameters as draw_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.learning.trees.tree import Tree
    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import Answering
    from app.privacy.voting.answering_mechanism import AnsweringMechanism

HIT, STABLE = 0, (1 << 64) - 1
CUTOFF = 3
BIT_HALF = (1 << 62, 1 << 61, 1 << 20)
PROFILE = stability.Parameters(((1 << 64) - 1, 1 << 63, 1 << 20), CUTOFF)

# The type checker reads these lines: a module is a mechanism.
STABILITY: AnsweringMechanism[stability.Parameters, stability.State, int, bool] = stability
UNIVERSAL: AnsweringMechanism[
    query_decision.Parameters, query_decision.State, Tally, query_decision.Outcome
] = query_decision
NOISY_VOTE: AnsweringMechanism[
    noisy_vote.Parameters, noisy_vote.State, Sequence[int], noisy_vote.Outcome
] = noisy_vote
BIT_VOTE: AnsweringMechanism[
    bit_vote.Parameters, noisy_vote.State, Sequence[int], noisy_vote.Outcome
] = bit_vote
SPARSE_VECTOR: AnsweringMechanism[
    sparse_vector.Parameters, sparse_vector.State, int, sparse_vector.Outcome
] = sparse_vector
SOFT_LABELS: AnsweringMechanism[
    soft_labels.Parameters, soft_labels.State, soft_labels.PrivateBins, soft_labels.Outcome
] = soft_labels


@dataclass(frozen=True)
class Ask:
    """One query of a run: a private value, and words enough for its step."""

    private_value: Any
    words: tuple[int, ...]


@dataclass(frozen=True)
class AnsweringCase:
    """A mechanism that answers query after query.

    Attributes:
        name: of its module.
        mechanism: the module.
        parameters: with room for many answers besides those that end a run.
        asks: of several queries, far from each other.
        ending: what, asked ``ending_count`` times, ends a run.
        lasting: what never ends a run by itself; None where every answer counts.
        hits: unstable asks with the same words and different private values.
        bad_parameters: each raises when it is called.

    """

    name: str
    mechanism: AnsweringMechanism[Any, Any, Any, Any]
    parameters: Any
    asks: Sequence[Ask]
    ending: Ask
    ending_count: int
    lasting: Ask | None
    hits: Sequence[Ask]
    bad_parameters: Sequence[Callable[[], object]]


@dataclass(frozen=True)
class OneShotCase:
    """A mechanism that draws once.

    Attributes:
        name: of its module.
        draw: the module's function.
        tree_of: the hypothesis in what was drawn.
        given: its parameters, at the share and the class of a draw of trees.

    """

    name: str
    draw: Callable[[Any, Any, NoiseSource], Any]
    tree_of: Callable[[Any], Tree]
    given: Callable[[exponential.Parameters], Any] = lambda given: given


def universal_parameters(
    answering: Answering, *, coin: bool = False, answer_limit: int = 1000
) -> query_decision.Parameters:
    """Return parameters of the universal algorithm over three labels."""
    return query_decision.Parameters(
        answering=answering,
        class_count=3,
        answer_limit=answer_limit,
        after=Sequel.CLASSIFIER,
        on_cutoff=Sequel.HALT,
        unstable_gets_coin=coin,
    )


def _universal_case(*, coin: bool) -> AnsweringCase:
    values = [
        Tally(plurality, distance, ())
        for plurality, distance in ((0, 0), (1, 0), (2, 1), (0, 2), (1, 500))
    ]
    hit_words = (HIT, 1 << 62) if coin else (HIT,)
    return AnsweringCase(
        name="query_decision",
        mechanism=UNIVERSAL,
        parameters=universal_parameters(PROFILE, coin=coin),
        asks=[Ask(value, (1 << 40, 1 << 62)) for value in values],
        ending=Ask(values[1], hit_words),
        ending_count=CUTOFF,
        lasting=Ask(values[1], (STABLE,)),
        hits=[Ask(value, hit_words) for value in values],
        bad_parameters=[
            lambda: query_decision.Parameters(PROFILE, 1, 5, Sequel.HALT, Sequel.HALT, coin),
            lambda: query_decision.Parameters(PROFILE, 2, -1, Sequel.HALT, Sequel.HALT, coin),
        ],
    )


def _universal_over_sparse_vector(*, refreshed: bool, coin: bool) -> AnsweringCase:
    """The sparse vector inside: distances far from the threshold decide."""
    threshold, words = 10**6, tuple(islice(seeded_words(4), 64))
    answering = sparse_vector.Parameters(
        threshold=threshold, cutoff=CUTOFF, refreshed=refreshed, **_laplace_noise()
    )
    unstable = [Tally(plurality, 10 * plurality, ()) for plurality in (1, 0, 2)]
    stable = Tally(2, 2 * threshold, ())
    near = [Tally(1, threshold + away, ()) for away in (0, 2)]
    return AnsweringCase(
        name="query_decision",
        mechanism=UNIVERSAL,
        parameters=universal_parameters(answering, coin=coin),
        asks=[Ask(value, words) for value in (near[0], stable, near[1], unstable[0])],
        ending=Ask(unstable[0], words),
        ending_count=CUTOFF,
        lasting=Ask(stable, words),
        hits=[Ask(value, words) for value in unstable],
        bad_parameters=[],
    )


def _universal_over_noisy_vote() -> AnsweringCase:
    """The noisy vote inside: every answer counts, and its limit is the run's."""
    words = tuple(islice(seeded_words(5), 4096))
    answering = noisy_vote.Parameters(
        vote_noise=DiscreteGaussian(Fraction(9)), class_count=3, ensemble_size=9, answer_limit=4
    )
    asks = [Ask(Tally(0, 0, (votes, 9 - votes, 0)), words) for votes in (0, 4, 5, 9)]
    return AnsweringCase(
        name="query_decision",
        mechanism=UNIVERSAL,
        parameters=universal_parameters(answering, answer_limit=4),
        asks=asks,
        ending=asks[1],
        ending_count=4,
        lasting=None,
        hits=[],
        bad_parameters=[
            lambda: universal_parameters(answering, answer_limit=5),
            lambda: query_decision.Parameters(answering, 2, 4, Sequel.HALT, Sequel.HALT, False),  # noqa: FBT003 -- all in their order
        ],
    )


def _laplace_noise() -> dict[str, DiscreteLaplace]:
    law = DiscreteLaplace(Fraction(2))
    return {"threshold_noise": law, "query_noise": law}


def _sparse_vector_case(*, refreshed: bool) -> AnsweringCase:
    """Values far from the threshold decide, whatever the noise of scale 2."""
    far, words = 10**6, tuple(islice(seeded_words(2), 64))
    common = _laplace_noise()
    return AnsweringCase(
        name="sparse_vector",
        mechanism=SPARSE_VECTOR,
        parameters=sparse_vector.Parameters(
            threshold=0, cutoff=CUTOFF, refreshed=refreshed, **common
        ),
        asks=[Ask(value, words) for value in (0, 3, -far, 1, far)],
        ending=Ask(-far, words),
        ending_count=CUTOFF,
        lasting=Ask(far, words),
        hits=[Ask(value, words) for value in (-far, -2 * far, -far - 1)],
        bad_parameters=[
            lambda: sparse_vector.Parameters(threshold=0, cutoff=0, refreshed=refreshed, **common)
        ],
    )


def _noisy_vote_case(class_count: int) -> AnsweringCase:
    """Every answer counts towards the end; none is unstable."""
    words = tuple(islice(seeded_words(3), 4096))

    def parameters(**changes: int) -> noisy_vote.Parameters:
        numbers = {"class_count": class_count, "ensemble_size": 9, "answer_limit": 4} | changes
        return noisy_vote.Parameters(vote_noise=DiscreteGaussian(Fraction(9)), **numbers)

    rest = (0,) * (class_count - 2)
    asks = [Ask((votes, 9 - votes, *rest), words) for votes in (0, 4, 5, 9)]
    return AnsweringCase(
        name="noisy_vote",
        mechanism=NOISY_VOTE,
        parameters=parameters(),
        asks=asks,
        ending=asks[1],
        ending_count=4,
        lasting=None,
        hits=[],
        bad_parameters=[
            lambda: parameters(class_count=1),
            lambda: parameters(ensemble_size=0),
            lambda: parameters(answer_limit=0),
        ],
    )


def _bit_vote_case() -> AnsweringCase:
    """Every answer counts towards the end; one word decides it."""

    def parameters(**changes: Any) -> bit_vote.Parameters:
        given: dict[str, Any] = {"half": BIT_HALF, "ensemble_size": 9, "answer_limit": 4}
        return bit_vote.Parameters(**given | changes)

    asks = [Ask((votes, 9 - votes), (1 << 40,)) for votes in (0, 4, 5, 9)]
    return AnsweringCase(
        name="bit_vote",
        mechanism=BIT_VOTE,
        parameters=parameters(),
        asks=asks,
        ending=asks[1],
        ending_count=4,
        lasting=None,
        hits=[],
        bad_parameters=[
            lambda: parameters(half=()),
            lambda: parameters(half=(1, 2)),
            lambda: parameters(half=(0,)),
            lambda: parameters(half=((1 << 63) + 1, 5)),
            lambda: parameters(ensemble_size=0),
            lambda: parameters(answer_limit=0),
        ],
    )


def _soft_labels_case() -> AnsweringCase:
    """An unstable query costs two units, so that five end within the third."""

    def bins(index: int, distance: int, bin_count: int = 10) -> soft_labels.PrivateBins:
        return soft_labels.PrivateBins(bin_count, (index, distance), (index + 1, distance))

    profile = stability.Parameters(PROFILE.thresholds, 5)
    return AnsweringCase(
        name="soft_labels",
        mechanism=SOFT_LABELS,
        parameters=profile,
        asks=[Ask(bins(index, index), (1 << 40, 1 << 62)) for index in range(5)],
        ending=Ask(bins(3, 0), (HIT, HIT)),
        ending_count=3,
        lasting=Ask(bins(3, 0), (STABLE,)),
        hits=[Ask(bins(index, index, index + 2), (HIT, HIT)) for index in range(5)],
        bad_parameters=[
            lambda: stability.Parameters(PROFILE.thresholds, 0),
            lambda: soft_labels.histogram(np.zeros(1), 1, shifted=False),
        ],
    )


def _soft_labels_vector_case() -> AnsweringCase:
    """The same over a refreshed sparse vector, whose noise is part of the state."""
    far, words = 10**6, tuple(islice(seeded_words(4), 64))
    laplace = DiscreteLaplace(Fraction(2))

    def bins(distance: int) -> soft_labels.PrivateBins:
        return soft_labels.PrivateBins(10, (3, distance), (4, distance))

    return AnsweringCase(
        name="soft_labels",
        mechanism=SOFT_LABELS,
        parameters=sparse_vector.Parameters(
            threshold=0, threshold_noise=laplace, query_noise=laplace, cutoff=5, refreshed=True
        ),
        asks=[Ask(bins(distance), words) for distance in (0, 3, -far, 1, far)],
        ending=Ask(bins(-far), words),
        ending_count=3,
        lasting=Ask(bins(far), words),
        hits=[Ask(bins(distance), words) for distance in (-far, -2 * far)],
        bad_parameters=[],
    )


def _universal_with_scores(case: AnsweringCase) -> AnsweringCase:
    """Soft labels inside: units count, and what goes out is a bin with its label."""

    def parameters(inside: Any, *, class_count: int = 2) -> query_decision.Parameters:
        return query_decision.Parameters(
            inside,
            class_count,
            1000,
            Sequel.CLASSIFIER,
            Sequel.HALT,
            unstable_gets_coin=False,
            with_scores=True,
        )

    noisy = noisy_vote.Parameters(
        vote_noise=DiscreteGaussian(Fraction(9)), class_count=2, ensemble_size=9, answer_limit=1000
    )
    return replace(
        case,
        name="query_decision",
        mechanism=UNIVERSAL,
        parameters=parameters(case.parameters),
        bad_parameters=[
            lambda: parameters(case.parameters, class_count=3),
            lambda: parameters(noisy),
        ],
    )


def _stability_case(name: str, kind: type[stability.Parameters]) -> AnsweringCase:
    """The one step of both calibrations that have a table."""
    return AnsweringCase(
        name=name,
        mechanism=STABILITY,
        parameters=kind(PROFILE.thresholds, CUTOFF),
        asks=[Ask(distance, (1 << 40,)) for distance in (0, 1, 2, 3, 10**6)],
        ending=Ask(0, (HIT,)),
        ending_count=CUTOFF,
        lasting=Ask(0, (STABLE,)),
        hits=[Ask(distance, (HIT,)) for distance in (0, 1, 2, 3, 10**6)],
        bad_parameters=[
            lambda: kind((), 1),
            lambda: kind((1, 2), 1),
            lambda: kind((1 << 64,), 1),
            lambda: kind((1,), 0),
        ],
    )


ANSWERING_CASES = [
    _stability_case("stability", stability.Parameters),
    _stability_case("certified_table", CertifiedParameters),
    _universal_case(coin=False),
    _universal_case(coin=True),
    _sparse_vector_case(refreshed=False),
    _sparse_vector_case(refreshed=True),
    _soft_labels_case(),
    _soft_labels_vector_case(),
    _noisy_vote_case(2),
    _noisy_vote_case(3),
    _bit_vote_case(),
    _universal_over_sparse_vector(refreshed=False, coin=True),
    _universal_over_sparse_vector(refreshed=True, coin=False),
    _universal_over_noisy_vote(),
    _universal_with_scores(_soft_labels_case()),
    _universal_with_scores(_soft_labels_vector_case()),
]


def _with_counts(given: exponential.Parameters) -> scored_tree.Parameters:
    """Return the parameters of a tree with noisy counts, at the share of a tree."""
    hypotheses = given.hypotheses
    assert isinstance(hypotheses, TreeClass)
    return scored_tree.Parameters(
        epsilon=given.epsilon,
        delta_truncation=given.delta_truncation,
        row_count=given.row_count,
        hypotheses=hypotheses,
    )


ONE_SHOT_CASES = [
    OneShotCase("exponential", exponential.draw, lambda drawn: drawn),
    OneShotCase("relabel", relabel.draw, lambda drawn: drawn.private_hypothesis),
    OneShotCase("scored_tree", scored_tree.draw, lambda drawn: drawn.tree, _with_counts),
    OneShotCase("semi_private", semi_private.draw, lambda drawn: drawn),
]

BAD_DRAW_PARAMETERS: list[Callable[[], object]] = [
    lambda: draw_parameters(Fraction(0)),
    lambda: draw_parameters(Fraction(-1)),
    lambda: draw_parameters(Fraction(10**6)),
    lambda: draw_parameters(row_count=0),
]

DETERMINISTIC = {"account", "accounts", "knowledge_transfer", "votes"}
"""Functions without a draw: of shares, of the votes, or of what was released already."""

TABLES = {"multiplicative_weights"}
"""One draw from counts, with a battery of its own: ``test_tables``."""

DESCENTS = {"noisy_gradient"}
"""Noisy sums step by step, with a battery of its own: ``test_descents``."""

GRIDS = {"noisy_grid", "pooled_labels"}
"""Noisy counts of all cells of public grids, with batteries of their own: ``test_grids`` and
``tests/unit/privacy/generations/test_pooled_labels.py``."""

INTERFACES = {"answering_mechanism"}
"""Modules that implement nothing."""
