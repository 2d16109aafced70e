"""Tables and scales are verified whenever a release opens; one that fails opens nothing.

Each fault is a good calibration with one thing altered.  Planted in what calibrates, it
is refused by the first opening, by learning, by simulation and by audits, before
anything is charged; planted in a ledger, digests and all, by every later start.  A later start
compares a table with the one that the opening recorded as checked, and `conclave verify` decides
about it exactly whatever was recorded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from app.auditing.audit import audit
from app.cli import run
from app.data.vectors import encode
from app.errors import InvariantError, LedgerCorruptError
from app.privacy.mechanisms import MECHANISMS
from app.privacy.stability.hit_table import ProfileTable
from app.privacy.stability.table_inequality import (
    MARGIN,
    WORD_RANGE,
    precise_context,
    to_decimal,
)
from app.release.progress import no_progress
from app.release.simulation import simulate
from app.release.statistics.opening_table import open_at_once
from app.release.terms import answer_terms
from app.release.terms.answer_terms import answering_registration, check_pieces
from tests.builders.ledger.releases import tamper
from tests.builders.mechanisms.planted_calibrations import PLANTED, Planted
from tests.builders.release.learning import POINTS, learned
from tests.builders.release.opened_release import NoNoise, kinds, statement_of
from tests.builders.release.small_release import private_rows, seeded_noise
from tests.builders.release.svt_release import (
    CERTIFIED,
    NOISY_COUNTS,
    NOISY_VOTE,
    REFRESHED,
    SVT,
    changed,
)
from tests.unit.release.terms.test_answer_terms import made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _pytest.mark import ParameterSet

    from app.privacy.mechanism_registration import Calibration
    from tests.builders.release.small_release import SmallRelease

SHARES = {f"privacy__shares__{name}": "0.3" for name in ("relabel", "answers", "classifier")}


def votes(release: SmallRelease) -> list[list[int]]:
    """Return the votes on one query, of as many labels as the release has."""
    return [[60, 40] + [0] * (len(release.settings().data.classes) - 2)]


OPENINGS: dict[str, Callable[[SmallRelease], object]] = {
    "serve": lambda release: release.open(noise=NoNoise()),
    "learn": lambda release: learned(release, noise=NoNoise()),
    "simulate": lambda release: simulate(
        release.settings(), votes(release), trials=1, noise=seeded_noise()
    ),
    "audit": lambda release: audit(
        release.settings(), steps=10, noise=seeded_noise(), with_draws=False
    ),
}
LATER: dict[str, Callable[[SmallRelease], object]] = {
    name: OPENINGS[name] for name in ("serve", "learn")
}
planted_cases = pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)


def _openings() -> Iterator[ParameterSet]:
    """Yield every fault with every opening.

    All of them are served, and one of each calibration is met by all else that opens;
    `make audit` has the rest, which goes by the same check.
    """
    met: set[str] = set()
    for planted in PLANTED:
        calibration = planted.name.partition(":")[0]
        for opening in OPENINGS:
            is_quick = opening == "serve" or calibration not in met
            marks = [] if is_quick else [pytest.mark.long]
            yield pytest.param(planted, opening, id=f"{planted.name}-{opening}", marks=marks)
        met.add(calibration)


@pytest.mark.parametrize(("planted", "opening"), [*_openings()])
def test_a_fault_opens_nothing(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, opening: str, planted: Planted
) -> None:
    """Altered where it is calibrated, it is refused by its claim, and nothing is charged."""
    release = changed(small_release, planted.changes)
    with (
        planted.calibrating(monkeypatch),
        pytest.raises(InvariantError, match=planted.claim),
    ):
        OPENINGS[opening](release)
    assert kinds(release) == []


@planted_cases
def test_a_fault_is_refused_by_every_later_start(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, planted: Planted
) -> None:
    """Kept under a digest of its own, with no record of a check, it is refused again and again."""
    release = changed(small_release, planted.changes)
    with planted.kept(monkeypatch):
        release.open().ledger.close()
    before = kinds(release)
    for opening in (*LATER, *LATER):
        with pytest.raises(InvariantError, match=planted.claim):
            LATER[opening](release)
    assert kinds(release) == before


ONE_A_KIND = list({planted.name.partition(":")[0]: planted for planted in PLANTED}.values())
one_a_kind = pytest.mark.parametrize("planted", ONE_A_KIND, ids=lambda planted: planted.name)


@one_a_kind
def test_every_later_start_refuses_a_table_other_than_the_one_that_was_checked(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, planted: Planted
) -> None:
    """Where the record is of the good one, bytes that differ are refused before any decision."""
    release = changed(small_release, planted.changes)
    with planted.kept(monkeypatch, "good"):
        release.open().ledger.close()
    before = kinds(release)
    for _ in range(2):
        with pytest.raises(LedgerCorruptError, match="another calibration than the one"):
            LATER["serve"](release)
        with pytest.raises(InvariantError, match=planted.claim):
            LATER["learn"](release)
    assert kinds(release) == before


@one_a_kind
def test_verify_decides_exactly_whatever_was_recorded(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    planted: Planted,
) -> None:
    """A fault that was recorded as checked starts, and `verify` and `learn` name what it breaks."""
    release = changed(small_release, planted.changes)
    with planted.kept(monkeypatch, "altered"):
        release.open().ledger.close()
    if "share" not in planted.claim:
        LATER["serve"](release)
    with pytest.raises(InvariantError, match=planted.claim):
        LATER["learn"](release)
    for name, text in release.changes.items():
        monkeypatch.setenv(f"CONCLAVE_{name.upper()}", text)
    assert run(["verify", "--config", str(release.folder / "conclave.toml")]) == 1
    assert re.search(planted.claim, capsys.readouterr().err)


CELLS = {
    "hypotheses__class": "cells",
    "hypotheses__cells": '["margin >= 0", "margin >= -25", "", "", "group = a", "", ""]',
}


@dataclass(frozen=True)
class WrongInteger:
    """One integer of a served calibration that is one off, or less than that by far.

    Attributes:
        row: name of the row of mechanisms whose calibration it is.
        changes: settings of a release that it serves.
        alter: the calibration with that integer.
        claim: what no longer holds.

    """

    row: str
    changes: dict[str, str]
    alter: Callable[[Calibration], Calibration]
    claim: str


def _with(calibration: Calibration, **fields: object) -> Calibration:
    return replace(calibration, **fields)  # type: ignore[type-var]  # each is a dataclass


def _one_lower(name: str) -> Callable[[Calibration], Calibration]:
    """Return what lowers the second of a calibration's words by one."""

    def alter(calibration: Calibration) -> Calibration:
        first, second, *others = getattr(calibration, name)
        return _with(calibration, **{name: (first, second - 1, *others)})

    return alter


def _less_noise(calibration: Calibration) -> Calibration:
    variance = getattr(calibration, "variance", Fraction(0))
    return _with(calibration, variance=variance * (1 - Fraction(1, 10**6)))


WRONG = [
    WrongInteger("profile", {"privacy__accounting": "sum"}, _one_lower("thresholds"), "within R"),
    WrongInteger("profile", {"privacy__accounting": "joint"}, _one_lower("thresholds"), "within R"),
    WrongInteger("certified", CERTIFIED, _one_lower("thresholds"), "inside the polygon"),
    WrongInteger("noisy-bit", NOISY_VOTE, _one_lower("even"), "within the price"),
    WrongInteger("noisy-vote", NOISY_COUNTS, _less_noise, "covers every answer"),
    WrongInteger(
        "svt",
        SVT,
        lambda made: _with(made, threshold=getattr(made, "threshold", 0) - 1),
        "keeps differing labels in",
    ),
    WrongInteger("profile-of-cells", CELLS, _one_lower("thresholds"), "within R"),
    WrongInteger(
        "noisy-bit-of-cells", {**CELLS, **NOISY_VOTE}, _one_lower("even"), "within the price"
    ),
    WrongInteger(
        "noisy-vote-of-cells", {**CELLS, **NOISY_COUNTS}, _less_noise, "covers every answer"
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.row} {wrong.changes}")
def test_verify_finds_one_wrong_integer(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wrong: WrongInteger,
) -> None:
    """Recorded as checked, it starts; `verify` decides about every served table, and says why."""
    release = changed(small_release, wrong.changes)
    planted = Planted(wrong.row, wrong.changes, wrong.alter, wrong.claim)
    for name, text in release.changes.items():
        monkeypatch.setenv(f"CONCLAVE_{name.upper()}", text)
    verify = ["verify", "--config", str(release.folder / "conclave.toml")]
    with planted.kept(monkeypatch, "altered"):
        opened = release.open()
    assert opened.mechanism.row is MECHANISMS[wrong.row]
    opened.ledger.close()
    release.open().ledger.close()
    assert run(verify) == 1
    assert wrong.claim in capsys.readouterr().err


def test_each_mechanism_has_a_wrong_integer() -> None:
    """Those that are not printed, whose every opening works its numbers out anew."""
    known = {row.name for row in MECHANISMS.values() if not row.is_printed}
    assert {wrong.row for wrong in WRONG} == known


@pytest.mark.parametrize("changes", [{}, SVT, CERTIFIED, NOISY_VOTE])
def test_a_restart_decides_nothing_about_a_table_that_was_checked(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str]
) -> None:
    """It compares a digest; without one, or with that of a weaker check, it decides as before."""
    release = changed(small_release, changes)
    release.open().ledger.close()
    row = answering_registration(release.settings(), release.ledger().read_state().release)
    decided: list[object] = []
    monkeypatch.setitem(MECHANISMS, row.name, replace(row, check=decided.append))
    release.open().ledger.close()
    assert decided == []
    monkeypatch.setattr(answer_terms, "CHECK_RULE", b"conclave exact check 2 ")
    release.open().ledger.close()
    assert len(decided) == 1
    check_pieces(release.settings(), release.ledger())
    assert len(decided) == 2


def test_statistics_are_refused_beside_a_fault(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of statistics is not drawn in a release that would not start."""
    release = changed(small_release, {"privacy__shares__statistics": "0.1", **SHARES})
    planted = PLANTED[0]
    with planted.kept(monkeypatch):
        release.open().ledger.close()
    before = kinds(release)
    configuration = release.configuration()
    with pytest.raises(InvariantError, match=planted.claim):
        open_at_once(
            configuration,
            ledger=release.ledger(),
            rows=private_rows(),
            public_values=encode(configuration.schema, POINTS),
            noise=NoNoise(),
            progress=no_progress,
            tell=lambda _: None,
        )
    assert kinds(release) == before


@pytest.mark.parametrize("name", ["an early entry is one lower", "a late entry is one lower"])
def test_one_order_of_a_pair_would_not_do(small_release: SmallRelease, name: str) -> None:
    """Lowered by one, an entry breaks (*) in the order that begins with the smaller of a pair."""
    # In that order alone: a check of the other one would accept it.
    _, _, table = made(small_release)
    (planted,) = (planted for planted in PLANTED if planted.name == f"profile: {name}")
    altered = planted.alter(table)
    assert isinstance(altered, ProfileTable)
    assert broken_orders(altered) == {"backward"}


def broken_orders(table: ProfileTable) -> set[str]:
    """Return the orders in which some pair breaks (*), by its definition at sixty digits."""
    broken = set()
    with localcontext(precise_context()):
        alpha, ratio = to_decimal(table.alpha), to_decimal(table.ln_ratio).exp()
        probabilities = [Decimal(threshold) / WORD_RANGE for threshold in table.thresholds]
        for p, q in pairwise(probabilities):
            for order, a, b in (("forward", p, q), ("backward", q, p)):
                hits = a**alpha * b ** (1 - alpha) / ratio
                answers = (1 - a) ** alpha * (1 - b) ** (1 - alpha)
                if hits + answers > 1 - MARGIN:
                    broken.add(order)
    return broken


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "profile-table"),
        (SVT, "svt-calibration"),
        (REFRESHED, "svt-calibration"),
        (NOISY_VOTE, "noisy-vote-table"),
        (NOISY_COUNTS, "noisy-vote-calibration"),
    ],
)
@pytest.mark.parametrize("damage", ["altered", "missing"])
@pytest.mark.parametrize("opening", LATER)
def test_a_calibration_altered_on_disk_is_named(
    small_release: SmallRelease, changes: dict[str, str], name: str, damage: str, opening: str
) -> None:
    """A byte more, or none at all, refuses every start that would use it."""
    release = changed(small_release, changes)
    release.open().ledger.close()
    tamper(release.folder / "conclave.db", statement_of(damage, name))
    with pytest.raises(LedgerCorruptError, match=name):
        LATER[opening](release)


@pytest.mark.parametrize("command", ["simulate", "audit"])
def test_commands_end_with_the_claim(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """One line says what does not hold, with exit code 1."""
    small_release.settings()
    votes = small_release.folder / "votes.csv"
    votes.write_text("60,40\n", encoding="utf-8")
    further = {"simulate": ["--votes", str(votes), "--trials", "1"], "audit": ["--quick"]}
    config = ["--config", str(small_release.folder / "conclave.toml")]
    with PLANTED[0].calibrating(monkeypatch):
        assert run([command, *config, *further[command]]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert PLANTED[0].claim in said.err
    assert "Traceback" not in said.err
