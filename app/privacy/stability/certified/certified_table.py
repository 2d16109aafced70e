"""A stability table with a certificate that proves it private.

A stability table has one threshold for each distance; the distance of a query is the number of
votes that may change without changing the leading label. An answer is unstable if a random 64-bit
integer is below the threshold. The certificate is a family of functions that proves the table's
privacy (``certificate.py``).

**Algorithm.** The step of :mod:`app.privacy.stability.mechanism` with another table of thresholds
(Theorem C, our own). The table is found by a search in floating point, on which no claim relies.
Whether it is valid is decided in integers, whenever a release opens, starts or is verified.

**Claim.** With a table that :func:`check` accepts, the answers to any number of adaptive queries
until T unstable answers are (epsilon, delta)-differentially private under replace-one, provided
that the distance of a query moves by at most 1 between neighbours and is 0 on both if a stable
answer would differ between them.

**Proof.** A certificate bounds the excess of the likelihood ratio over c, a number of at most
e^epsilon, by induction over queries: ``app/privacy/stability/certified/certified_table_proof.md``.

**Inputs and outputs.** In: ``epsilon``, ``delta`` and ``cutoff``, the answers' budget and the
cutoff T, public and exact. Out: a :class:`CertifiedTable`, public: 64-bit thresholds by distance,
and the certificate. No private value is read here; the step reads the distance.

**Utility.** A query at distance d is stable with probability exactly 1 - thresholds[d] / 2^64. If T
is at most 5, the distance needed for the same probability is smaller than with calibration
``profile``.

**Deviations.** None: no paper prints this algorithm.

**With draws.** The hypothesis that relabels, drawn before the first answer, and the classifier,
drawn after the last, may share one privacy account with the answers. All of them together are then
(epsilon, delta)-private (Theorem C').

**Raises.** ``ConfigurationError``: a budget for which no table exists. ``InvariantError``: a table
that does not satisfy the theorem.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, InvariantError, invariant
from app.privacy.budget.ensemble_size import ApproximateProfile
from app.privacy.stability.certified.certificate import (
    NODE_BITS,
    NODE_ONE,
    SLOPE_BITS,
    Certificate,
    check_certificate,
    delta_after_draw,
    least_first,
    pays_pair,
)
from app.privacy.stability.certified.certificate_search import (
    Around,
    Chance,
    search_certificate,
    search_pairs,
)
from app.privacy.stability.hit_table import ENTRY_COUNT_MAX, HELD_BELOW_THRESHOLD, TABLES_KEPT
from app.privacy.stability.profile_parameters import CUTOFF_KEY, DELTA_KEY, EPSILON_KEY
from app.privacy.stability.table_inequality import (
    WORD_RANGE,
    precise_context,
    rounding_error,
    to_decimal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CERTIFIED_CUTOFF_MAX: Final = 5
CERTIFIED_EPSILON_MAX: Final = 50
CERTIFIED_DELTA_MIN: Final = Fraction(1, 10**12)
VERTEX_COUNT_MAX: Final = 1024
NUDGE_BITS: Final = 20
ONLY: Final = 'with privacy.calibration = "certified"; "profile" serves the rest'

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SharedWith:
    """The epsilons of the private draws that share a privacy account with the answers.

    Attributes:
        relabel: the epsilon of the draw before the first answer; 0 if there is none.
        classifier: the epsilon of the draw after the last answer; 0 if there is none.

    """

    relabel: Fraction = Fraction(0)
    classifier: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Raise an error for an epsilon below 0."""
        invariant(min(self.relabel, self.classifier) >= 0, "a share is not negative")

    @property
    def around(self) -> Around:
        """Bounds on how far the draws before and after the answers move likelihood ratios."""
        return Around(
            range_before=NODE_ONE if not self.relabel else factor_below(self.relabel) + 2,
            spared_after=NODE_ONE if not self.classifier else factor_below(-self.classifier),
        )


ALONE: Final = SharedWith()


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedTable:
    """The stability table in use, with its budget and its privacy certificate.

    Attributes:
        epsilon: the answers' share of epsilon; if there are draws, the epsilon of answers and draws
            together.
        delta: the answers' share of delta.
        cutoff: T, the number of unstable answers after which the models stop.
        shared: the draws that share one privacy account with the answers; their epsilons are 0 if
            the answers have an account of their own.
        certificate: the functions that prove the table private.
        vertices: corners of a region of pairs of thresholds. The certificate allows each pair in
            the region at two neighbouring distances, and all such pairs of the table lie in it.
        thresholds: ``P[d]``, the number of 64-bit random words, out of ``2**64``, that make an
            answer at distance ``d`` unstable; the last one also applies to all larger distances.

    """

    epsilon: Fraction
    delta: Fraction
    cutoff: int
    certificate: Certificate
    vertices: tuple[Pair, ...]
    thresholds: tuple[int, ...]
    shared: SharedWith = ALONE

    def hit_probability(self, distance: int) -> float:
        """Return the probability that the answer to a query at ``distance`` is unstable."""
        return self.thresholds[min(distance, len(self.thresholds) - 1)] / WORD_RANGE

    def distance_at(self, probability: float) -> int:
        """Return the smallest distance at which an answer is unstable with at most this chance."""
        wanted = math.floor(Fraction(probability) * WORD_RANGE)
        found = bisect_left(self.thresholds, -wanted, key=lambda threshold: -threshold)
        return min(found, len(self.thresholds) - 1)

    def to_plain(self) -> dict[str, str | list[str]]:
        """Return the table as strings and lists of strings, without loss of precision."""
        shared = {"relabel": self.shared.relabel, "classifier": self.shared.classifier}
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            **{name: str(share) for name, share in shared.items() if share},
            "cutoff": str(self.cutoff),
            "factor": str(self.certificate.factor),
            "nodes": [str(node) for node in self.certificate.nodes],
            "slopes": [" ".join(map(str, slopes)) for slopes in self.certificate.slopes],
            "vertices": [f"{one} {other}" for one, other in self.vertices],
            "thresholds": [str(threshold) for threshold in self.thresholds],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, str | list[str]]) -> CertifiedTable:
        """Return the table that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

        """
        try:
            pairs = [_numbers(text) for text in plain["vertices"]]
            return cls(
                epsilon=Fraction(str(plain["epsilon"])),
                delta=Fraction(str(plain["delta"])),
                cutoff=int(str(plain["cutoff"])),
                certificate=Certificate(
                    factor=int(str(plain["factor"])),
                    nodes=tuple(int(node) for node in plain["nodes"]),
                    slopes=tuple(_numbers(text) for text in plain["slopes"]),
                ),
                vertices=tuple((one, other) for one, other in pairs),
                thresholds=tuple(int(threshold) for threshold in plain["thresholds"]),
                shared=SharedWith(
                    relabel=Fraction(str(plain.get("relabel", "0"))),
                    classifier=Fraction(str(plain.get("classifier", "0"))),
                ),
            )
        except (KeyError, ValueError, ZeroDivisionError) as error:
            message = "the persisted table with its certificate is not one"
            raise InvariantError(message) from error


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split())


def calibrate(
    *, epsilon: Fraction, delta: Fraction, cutoff: int, shared: SharedWith = ALONE
) -> CertifiedTable:
    """Return a stability table and its certificate for a budget.

    Args:
        epsilon: the answers' share of epsilon, above 0; if there are draws, the epsilon of answers
            and draws together.
        delta: the answers' share of delta, in (0, 1).
        cutoff: T, the number of unstable answers after which the models stop, 1 to 5.
        shared: the draws that share one privacy account with the answers.

    Raises:
        ConfigurationError: the budget is out of range, or its table would be too long.

    """
    return _calibrated(epsilon, delta, cutoff, shared)


@lru_cache(maxsize=TABLES_KEPT)
def _calibrated(
    epsilon: Fraction, delta: Fraction, cutoff: int, shared: SharedWith
) -> CertifiedTable:
    """Build a table once a process: planning and opening ask for the same one."""
    certificate, guesses = _searched(epsilon, delta, cutoff, shared, quickly=False)
    vertices = tuple(_accepted(certificate, word, guess) for word, guess in guesses)
    return CertifiedTable(
        epsilon=epsilon,
        delta=delta,
        cutoff=cutoff,
        certificate=certificate,
        vertices=vertices,
        thresholds=_thresholds(vertices),
        shared=shared,
    )


def _searched(
    epsilon: Fraction, delta: Fraction, cutoff: int, shared: SharedWith, *, quickly: bool
) -> tuple[Certificate, list[Pair]]:
    """Return a certificate, and the words that one record may exchange by a search in doubles."""
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=cutoff)
    searched = search_certificate(
        factor=factor_below(epsilon),
        delta=float(delta),
        cutoff=cutoff,
        around=shared.around,
        quickly=quickly,
    )
    first = least_first(searched.certificate)
    pairs = search_pairs(searched, (WORD_RANGE - first) / WORD_RANGE, quickly=quickly)
    found = [(_nearest_word(one), _nearest_word(other)) for one, other in pairs]
    return searched.certificate, [(first, found[0][1]), *found[1:]]


def refuse_out_of_range(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> None:
    """Raise an error for a budget for which no table exists, and name the setting to change.

    Raises:
        ConfigurationError: the budget is out of range; the error names ``privacy.epsilon``,
            ``privacy.delta`` or ``answers.cutoff``.

    """
    if not 1 <= cutoff <= CERTIFIED_CUTOFF_MAX:
        raise ConfigurationError(CUTOFF_KEY, f"must be 1 to {CERTIFIED_CUTOFF_MAX} {ONLY}")
    if not 0 < epsilon <= CERTIFIED_EPSILON_MAX:
        problem = f"must leave the answers more than 0 and at most {CERTIFIED_EPSILON_MAX} {ONLY}"
        raise ConfigurationError(EPSILON_KEY, problem)
    if not CERTIFIED_DELTA_MIN <= delta < 1:
        problem = f"must leave the answers {float(CERTIFIED_DELTA_MIN):g} at least {ONLY}"
        raise ConfigurationError(DELTA_KEY, problem)


def factor_below(epsilon: Fraction) -> int:
    """Return ``e**epsilon`` times ``2**40``, rounded down to an integer."""
    with localcontext(precise_context()) as context:
        context.rounding = ROUND_FLOOR
        return math.floor(to_decimal(epsilon).exp() * NODE_ONE)


def _nearest_word(chance: Chance) -> int:
    """Return the nearest threshold, rounding the smaller of the two probabilities."""
    if chance.hit < chance.none:
        return round(chance.hit * WORD_RANGE)
    return WORD_RANGE - round(chance.none * WORD_RANGE)


def _accepted(certificate: Certificate, word: int, guess: int) -> Pair:
    """Return a word with a neighbour that (d) accepts: the guess, or one a little larger."""
    nudge = max(1, (word - guess) >> NUDGE_BITS)
    neighbor = guess
    while neighbor < word and not pays_pair(certificate, word, neighbor):
        neighbor, nudge = neighbor + nudge, 2 * nudge
    if neighbor >= word:
        raise ConfigurationError(EPSILON_KEY, f"has no table {ONLY}")
    return word, neighbor


def _thresholds(vertices: Sequence[Pair]) -> tuple[int, ...]:
    """Follow the polygon from its first word until the table is held constant."""
    (last, after), found, edge = vertices[-1], [vertices[0][0]], 0
    # Each step multiplies by the last ratio at most, once hits are seldom.
    count = math.log(HELD_BELOW_THRESHOLD / WORD_RANGE) / math.log(after / last)
    if count > ENTRY_COUNT_MAX:
        problem = f"needs a table of about {count:.0f} entries, above {ENTRY_COUNT_MAX}"
        raise ConfigurationError(EPSILON_KEY, problem)
    while found[-1] >= HELD_BELOW_THRESHOLD:
        invariant(len(found) < 2 * ENTRY_COUNT_MAX, "the table ends")
        while edge < len(vertices) - 1 and vertices[edge + 1][0] >= found[-1]:
            edge += 1
        found.append(math.ceil(_least_neighbor(vertices, edge, found[-1])))
    return tuple(found)


def _least_neighbor(vertices: Sequence[Pair], edge: int, word: int) -> Fraction:
    """Return where the polygon lies at a word, on the edge that begins at a vertex.

    The last edge ends at 0: far out the ratio of neighbours is constant.
    """
    above, after = vertices[edge]
    below, after_below = vertices[edge + 1] if edge + 1 < len(vertices) else (0, 0)
    return after_below + Fraction((after - after_below) * (word - below), above - below)


def check(table: CertifiedTable) -> None:
    """Raise an error unless the table keeps the privacy claim, before it is used.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    _check(table)


@lru_cache(maxsize=TABLES_KEPT)
def _check(table: CertifiedTable) -> None:
    """Decide about every value of a table, once a process for each that holds."""
    certificate, thresholds = table.certificate, table.thresholds
    invariant(1 <= table.cutoff <= CERTIFIED_CUTOFF_MAX, "the cutoff is within its bound")
    invariant(0 < table.epsilon <= CERTIFIED_EPSILON_MAX, "epsilon is within its bound")
    invariant(0 < table.delta < 1, "delta lies between 0 and 1")
    within = 0 < len(thresholds) <= 2 * ENTRY_COUNT_MAX
    invariant(within, "the table has entries, and not too many")
    inside = all(0 < threshold < WORD_RANGE for threshold in thresholds)
    invariant(inside, "thresholds lie strictly inside a word")
    invariant(certificate.cutoff == table.cutoff, "the certificate pays for T hits")
    invariant(factor_holds(certificate.factor, table.epsilon), "c is at most e^epsilon")
    around = _checked_around(table)
    check_certificate(certificate, first=thresholds[0], spared=around.spared_after)
    paid = Fraction(certificate.delta, 1 << (NODE_BITS + SLOPE_BITS)) <= table.delta
    invariant(paid, "V_T(1) is at most delta")
    if around.range_before > NODE_ONE:
        paid = delta_after_draw(certificate, around.range_before) <= table.delta
        invariant(paid, "V_T after the draw that relabels is at most delta")
    _check_vertices(table)
    covered = within_polygon(table.vertices, pairwise(thresholds))
    invariant(covered, "neighbours lie inside the polygon")


def _checked_around(table: CertifiedTable) -> Around:
    """Return the draws around the answers, after checking how they were rounded."""
    around, shared = table.shared.around, table.shared
    invariant(shared.relabel + shared.classifier < table.epsilon, "the answers have a share")
    if shared.relabel:
        covered = factor_holds(around.range_before, shared.relabel, is_above=True)
        invariant(covered, "E is at least e to the range of the draw that relabels")
    if shared.classifier:
        spared = factor_holds(around.spared_after, -shared.classifier)
        invariant(spared, "s is at most e to less the range of the classifier's draw")
    return around


def factor_holds(factor: int, epsilon: Fraction, *, is_above: bool = False) -> bool:
    """Return whether ``factor / 2**40`` is surely at most, or at least, ``e**epsilon``.

    Rounding never makes the result wrongly true. With ``is_above`` the function tests "at least".
    """
    with localcontext(precise_context()):
        logarithm = Decimal(factor).ln() - Decimal(NODE_ONE).ln()
        magnitude = 2 * Decimal(factor).ln() + Decimal(NODE_ONE).ln()
        error = rounding_error(magnitude)
        if is_above:
            return logarithm - error >= to_decimal(epsilon)
        return logarithm + error <= to_decimal(epsilon)


def _check_vertices(table: CertifiedTable) -> None:
    """Check (d) at every vertex, which is what takes the time."""
    vertices = table.vertices
    invariant(0 < len(vertices) <= VERTEX_COUNT_MAX, "a polygon has vertices, and not too many")
    inside = all(0 < other <= one < WORD_RANGE for one, other in vertices)
    invariant(inside, "vertices lie below the diagonal, inside a word")
    falling = all(a[0] > b[0] for a, b in pairwise(vertices))
    invariant(falling, "vertices go outwards")
    invariant(table.thresholds[0] <= vertices[0][0], "the polygon begins at P_0")
    paid = all(pays_pair(table.certificate, one, other) for one, other in vertices)
    invariant(paid, "(d): V pays for every vertex")


def within_polygon(vertices: Sequence[Pair], pairs: Iterable[Pair]) -> bool:
    """Return whether all given pairs of neighbouring thresholds lie within a polygon.

    Args:
        vertices: the corners of the polygon, each a pair of thresholds.
        pairs: pairs of thresholds at neighbouring distances.

    """
    words = [-one for one, _ in vertices]
    return all(
        other <= one <= vertices[0][0]
        and other >= _least_neighbor(vertices, bisect_right(words, -one) - 1, one)
        for one, other in pairs
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateCertified(ApproximateProfile):
    """An approximate stability table with an unchecked certificate, for planning only."""


def approximate(
    *, epsilon: Fraction, delta: Fraction, cutoff: int, shared: SharedWith = ALONE
) -> ApproximateCertified:
    """Return an approximate certified table for a budget, in floating point, for planning.

    Raises:
        ConfigurationError: the budget is out of range, or its table would be too long.

    """
    return _approximate(epsilon, delta, cutoff, shared)


@lru_cache(maxsize=TABLES_KEPT)
def _approximate(
    epsilon: Fraction, delta: Fraction, cutoff: int, shared: SharedWith
) -> ApproximateCertified:
    _, guesses = _searched(epsilon, delta, cutoff, shared, quickly=True)
    if any(other >= one for one, other in guesses):
        raise ConfigurationError(EPSILON_KEY, f"has no table {ONLY}")
    hits = tuple(threshold / WORD_RANGE for threshold in _thresholds(guesses))
    return ApproximateCertified(cutoff=cutoff, hits=hits)
