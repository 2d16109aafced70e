"""Calibrations that differ from a good one in a single thing, by the claim that each breaks."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.noisy_vote import vote_table
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration
from app.privacy.noisy_vote.vote_table import VoteTable
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector.calibration import SCALE_GRID, SvtCalibration
from app.privacy.stability import hit_table as profile
from app.privacy.stability.certified import certified_table as certified
from app.privacy.stability.certified.certificate import NODE_ONE
from app.privacy.stability.certified.certified_table import CertifiedTable
from app.privacy.stability.hit_table import ProfileTable
from app.privacy.stability.table_inequality import WORD_RANGE
from app.release import drawing as draw_ensemble
from app.release.terms.answer_terms import calibration_piece, checked_piece
from tests.builders.release.svt_release import CERTIFIED, NOISY_COUNTS, NOISY_VOTE, REFRESHED, SVT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pytest

    from app.privacy.mechanism_registration import Calibration

CalibrationT = TypeVar(
    "CalibrationT", ProfileTable, CertifiedTable, SvtCalibration, NoisyVoteCalibration, VoteTable
)


Record: TypeAlias = Literal["none", "good", "altered"]


@dataclass(frozen=True)
class Planted:
    """A fault of a calibration.

    Attributes:
        name: shown by pytest.
        changes: settings of the release that it is planted in.
        alter: makes it, in one thing.
        claim: what no longer holds, in the check's words.

    """

    name: str
    changes: Mapping[str, str]
    alter: Callable[[Calibration], Calibration]
    claim: str

    @contextmanager
    def calibrating(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Let every calibration come out altered while the block runs."""
        with monkeypatch.context() as patched:
            for module in (profile, certified, svt, noisy_vote, vote_table):
                patched.setattr(module, "calibrate", _altered(module.calibrate, self.alter))
            yield

    @contextmanager
    def kept(self, monkeypatch: pytest.MonkeyPatch, record: Record = "none") -> Iterator[None]:
        """Let an opening keep it, digest and all, in place of the good one that it checked.

        Args:
            monkeypatch: undone when the block ends.
            record: what the opening says that it checked: nothing, as earlier versions did, the
                good one, or the altered one.

        """
        recorded: dict[Record, Callable[[Calibration], dict[str, bytes]]] = {
            "none": lambda _: {},
            "good": checked_piece,
            "altered": lambda calibration: checked_piece(self.alter(calibration)),
        }
        with monkeypatch.context() as patched:
            patched.setattr(
                draw_ensemble,
                "calibration_piece",
                lambda calibration: calibration_piece(self.alter(calibration)),
            )
            patched.setattr(draw_ensemble, "checked_piece", recorded[record])
            yield


def _altered(
    calibrate: Callable[..., Calibration], alter: Callable[[Calibration], Calibration]
) -> Callable[..., Calibration]:
    return lambda **budget: alter(calibrate(**budget))


def _of(
    kind: type[CalibrationT], alter: Callable[[CalibrationT], CalibrationT]
) -> Callable[[Calibration], Calibration]:
    """Alter one kind of calibration, and leave the others."""
    return lambda good: alter(good) if isinstance(good, kind) else good


def _table(name: str, claim: str, alter: Callable[[ProfileTable], ProfileTable]) -> Planted:
    return Planted(f"profile: {name}", {}, _of(ProfileTable, alter), claim)


def _entry(table: ProfileTable, index: int, change: int) -> ProfileTable:
    """Return a table of which one threshold is off by so many."""
    thresholds = list(table.thresholds)
    thresholds[index] += change
    return replace(table, thresholds=tuple(thresholds))


def _risen(table: ProfileTable) -> ProfileTable:
    middle = len(table.thresholds) // 2
    return _entry(table, middle, 1 + table.thresholds[middle - 1] - table.thresholds[middle])


def _least_release(table: ProfileTable) -> ProfileTable:
    """Keep differing labels in as rarely as 64 bits allow, in a part of delta to match."""
    least = Fraction(table.cutoff, WORD_RANGE)
    first = table.thresholds[0]
    return replace(_entry(table, 0, WORD_RANGE - 1 - first), delta_release=least)


def _even(table: VoteTable, index: int, change: int) -> VoteTable:
    """Return a table of which one word of an even k is off by so many."""
    words = list(table.even)
    words[index] += change
    return replace(table, even=tuple(words))


def _odd_closer(table: VoteTable) -> VoteTable:
    """Let the two labels of the closest vote be further apart by one word each."""
    return replace(table, odd=(table.odd[0] - 1, *table.odd[1:]))


def _of_half_the_answers(table: VoteTable) -> VoteTable:
    """Return the table of half of the answers, said to be of all."""
    halved = TRUE_TABLE(
        epsilon=table.epsilon,
        delta=table.delta,
        answer_limit=max(1, table.answer_limit // 2),
        draws=table.draws,
    )
    return replace(halved, answer_limit=table.answer_limit)


TRUE_TABLE = vote_table.calibrate
COVERS, SHARE = "the variance covers every answer", "the answers' share"
WITHIN_PRICE = "stay within the price"


def _certified(name: str, claim: str, alter: Callable[[CertifiedTable], CertifiedTable]) -> Planted:
    return Planted(f"certified: {name}", CERTIFIED, _of(CertifiedTable, alter), claim)


def _word(table: CertifiedTable, index: int, change: int) -> CertifiedTable:
    """Return a table of which one threshold is off by so many."""
    thresholds = list(table.thresholds)
    thresholds[index] += change
    return replace(table, thresholds=tuple(thresholds))


def _node_lowered(table: CertifiedTable) -> CertifiedTable:
    """Lower ``V_T`` by a tenth of a cell's rise at one node, convex as before."""
    nodes, rows = table.certificate.nodes, [list(row) for row in table.certificate.slopes]
    node = (nodes.index(NODE_ONE) + nodes.index(table.certificate.factor)) // 2
    before, behind = nodes[node] - nodes[node - 1], nodes[node + 1] - nodes[node]
    lower = rows[-1][node - 1] // 10
    rows[-1][node - 1] -= lower
    rows[-1][node] += -(-lower * before // behind)
    for cell in range(node - 2, -1, -1):
        rows[-1][cell] = min(rows[-1][cell], rows[-1][cell + 1])
    for cell in range(node + 1, len(nodes)):
        rows[-1][cell] = max(rows[-1][cell], rows[-1][cell - 1])
    return _with_slopes(table, rows)


def _with_slopes(table: CertifiedTable, rows: Sequence[Sequence[int]]) -> CertifiedTable:
    slopes = tuple(map(tuple, rows))
    return replace(table, certificate=replace(table.certificate, slopes=slopes))


def _factor_rounded_up(table: CertifiedTable) -> CertifiedTable:
    factor = table.certificate.factor + 1
    return replace(table, certificate=replace(table.certificate, factor=factor))


def _labels_for_one_hit(table: CertifiedTable) -> CertifiedTable:
    """Let labels out as often as delta allows one hit, in place of each of T."""
    first = WORD_RANGE - table.cutoff * (WORD_RANGE - table.thresholds[0])
    vertices = tuple(pair for pair in table.vertices if pair[0] < first)
    start = next(index for index, word in enumerate(table.thresholds) if word < vertices[0][0])
    table = replace(table, thresholds=table.thresholds[start:])
    return _word(table, 0, vertices[0][0] - table.thresholds[0])


def _of_fewer_hits(table: CertifiedTable) -> CertifiedTable:
    fewer = TRUE_CERTIFIED(epsilon=table.epsilon, delta=table.delta, cutoff=table.cutoff - 1)
    return replace(fewer, cutoff=table.cutoff)


TRUE_PROFILE, TRUE_CERTIFIED = profile.calibrate, certified.calibrate
HITS, LABELS = "the scales cover the cutoff's hits", "the threshold keeps differing labels in"
SMALL = Fraction(4, SCALE_GRID)

PLANTED = [
    _table("P_0 is one lower", "p_0 keeps differing labels in", lambda t: _entry(t, 0, -1)),
    _table("an early entry is one lower", "within R", lambda t: _entry(t, 1, -1)),
    _table("a late entry is one lower", "within R", lambda t: _entry(t, -2, -1)),
    _table("an entry is one higher", "within R", lambda t: _entry(t, 1, 1)),
    _table("an entry is above the one before", "do not rise", _risen),
    _table(
        "a last entry of none",
        "strictly inside a word",
        lambda t: replace(t, thresholds=(*t.thresholds, 0)),
    ),
    _table(
        "a first entry of all words",
        "strictly inside a word",
        lambda t: replace(t, thresholds=(WORD_RANGE, *t.thresholds)),
    ),
    _table(
        "ln R is a step larger",
        "delta_svt covers",
        lambda t: replace(t, ln_ratio=t.ln_ratio + Fraction(1, 1 << 40)),
    ),
    _table(
        "alpha is smaller",
        "delta_svt covers",
        lambda t: replace(t, alpha=1 + (t.alpha - 1) / 2),
    ),
    _table("delta_release is below 2^-60 a hit", "60 a hit at least", _least_release),
    _table(
        "it was made for twice the epsilon",
        "the one of the answers' share",
        lambda t: TRUE_PROFILE(epsilon=2 * t.epsilon, delta=t.delta, cutoff=t.cutoff),
    ),
    _certified("P_0 is one lower", r"\(c\): V pays", lambda t: _word(t, 0, -1)),
    _certified("an early entry is one lower", "inside the polygon", lambda t: _word(t, 1, -1)),
    _certified("a late entry is one lower", "inside the polygon", lambda t: _word(t, -1, -1)),
    _certified("a node of V_T is lower", r"\(d\): V pays", _node_lowered),
    _certified("V is for one hit fewer", "pays for T hits", _of_fewer_hits),
    _certified(
        "V_T is that of one hit fewer",
        r"\(c\): V pays",
        lambda t: _with_slopes(t, (*t.certificate.slopes[:-1], t.certificate.slopes[-2])),
    ),
    _certified("c is rounded up", "at most e", _factor_rounded_up),
    _certified("P_0 is for one hit", r"\(c\): V pays", _labels_for_one_hit),
    _certified(
        "a vertex is further from the diagonal",
        r"\(d\): V pays",
        lambda t: replace(t, vertices=((t.vertices[0][0], t.vertices[1][1]), *t.vertices[1:])),
    ),
    _certified(
        "it was made for a larger delta",
        "V_T.1. is at most delta",
        lambda t: replace(
            TRUE_CERTIFIED(epsilon=t.epsilon, delta=2 * t.delta, cutoff=t.cutoff), delta=t.delta
        ),
    ),
    *(
        Planted(f"{name}: {fault}", changes, _of(SvtCalibration, alter), claim)
        for name, changes in (("one threshold", SVT), ("refreshed", REFRESHED))
        for fault, claim, alter in (
            (
                "b1 is a little smaller",
                HITS,
                lambda c: replace(c, threshold_scale=c.threshold_scale - SMALL),
            ),
            (
                "b2 is a little smaller",
                HITS,
                lambda c: replace(c, query_scale=c.query_scale - SMALL),
            ),
            ("w is one lower", LABELS, lambda c: replace(c, threshold=c.threshold - 1)),
            ("one hit more", "the answers' share", lambda c: replace(c, cutoff=c.cutoff + 1)),
        )
    ),
    *(
        Planted(f"noisy vote: {fault}", NOISY_COUNTS, _of(NoisyVoteCalibration, alter), claim)
        for fault, claim, alter in (
            (
                "the variance is a millionth smaller",
                COVERS,
                lambda c: replace(c, variance=c.variance * (1 - Fraction(1, 10**6))),
            ),
            ("the order is another", COVERS, lambda c: replace(c, alpha=Fraction(2))),
            ("one answer more", SHARE, lambda c: replace(c, answer_limit=c.answer_limit + 1)),
        )
    ),
    *(
        Planted(f"noisy bit: {fault}", NOISY_VOTE, _of(VoteTable, alter), claim)
        for fault, claim, alter in (
            ("a tie is no fair coin", "fair coin", lambda t: _even(t, 0, -1)),
            ("a word is one lower", WITHIN_PRICE, lambda t: _even(t, 2, -1)),
            ("the last word is one lower", WITHIN_PRICE, lambda t: _even(t, -1, -1)),
            ("the closest vote of an odd k", "closest vote", _odd_closer),
            ("words rise", "do not rise", lambda t: _even(t, 3, t.even[2] - t.even[3] + 1)),
            ("a last word of none", "strictly", lambda t: replace(t, even=(*t.even, 0))),
            ("it is for half of the answers", "delta covers", _of_half_the_answers),
            ("one answer more", SHARE, lambda t: replace(t, answer_limit=t.answer_limit + 1)),
        )
    ),
]
