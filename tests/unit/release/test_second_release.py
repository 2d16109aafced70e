"""A second release in one database: refused until it states what both promise together."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.answering.queries import Fresh
from app.data.rows import PrivateRows
from app.data.streaming.streamed_rows import fingerprint_by
from app.errors import (
    ConfigurationError,
    LedgerUnavailableError,
    ReleaseMismatchError,
    VerificationError,
)
from app.ledger.copies.copies import back_up, restore, retire
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.release import opening
from app.release.composed_budget import exact_text, warn_of_others
from app.release.views.budget import budget_view
from tests.builders.release.opened_release import NoNoise, changed, kinds, shares
from tests.builders.release.small_release import (
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from app.release.release import Release

BOTH = {"privacy__composed__epsilon": "40", "privacy__composed__delta": "2e-2"}
SAME = 'which holds "small" on the same rows'
OTHER = 'which holds "small" on other rows, perhaps of the same people'


def second_of(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return a release of another name in the same database; it states nothing."""
    return changed(release, release__name="second", **changes)


def refusal(release: SmallRelease, rows: PrivateRows | None = None) -> str:
    """Open a release that is refused, without a draw, and return the line."""
    with pytest.raises(ReleaseMismatchError) as refused:
        release.open(rows=rows, noise=NoNoise())
    return str(refused.value)


def unstated(held: str) -> str:
    """Return the line that refuses a second release without a statement."""
    return (
        f'release.name: no release "second" in the ledger, {held}; correct the name, or open a '
        "second release by stating in [privacy.composed] what all promise together: at least "
        "epsilon = 40, delta = 0.02"
    )


def one_row_more() -> PrivateRows:
    """Return the private rows with one of them twice."""
    rows = private_rows()
    return PrivateRows(
        values=np.concatenate([rows.values, rows.values[:1]]),
        labels=np.concatenate([rows.labels, rows.labels[:1]]),
    )


def test_a_second_release_is_refused_without_a_statement(small_release: SmallRelease) -> None:
    """One line names the key, what is there, on which rows, and what to state."""
    small_release.open()
    before = kinds(small_release)
    assert refusal(second_of(small_release)) == unstated(SAME)
    assert refusal(second_of(small_release), one_row_more()) == unstated(OTHER)
    assert second_of(small_release).ledger().read_state().release is None
    assert kinds(small_release) == before


def test_rows_under_another_schema_are_other_rows(small_release: SmallRelease) -> None:
    """The fingerprint is of encoded rows; the statement is wanted whatever it says."""
    small_release.open()
    rows = private_rows()
    clipped = PrivateRows(values=np.clip(rows.values, -40, 40), labels=rows.labels)
    assert refusal(second_of(small_release), clipped) == unstated(OTHER)


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        (
            BOTH | {"privacy__composed__epsilon": "39.999999999999"},
            (
                "privacy.composed.epsilon: is 39.999999999999, and the releases of this ledger "
                'come to 40 with this one: "small" epsilon 20, delta 0.01; state at least that'
            ),
        ),
        (
            BOTH | {"privacy__composed__delta": "0.019999999999"},
            (
                "privacy.composed.delta: is 0.019999999999, and the releases of this ledger "
                'come to 0.02 with this one: "small" epsilon 20, delta 0.01; state at least that'
            ),
        ),
    ],
)
def test_a_statement_that_is_too_small_by_a_trifle_is_refused(
    small_release: SmallRelease, statement: dict[str, str], line: str
) -> None:
    """The sum is exact, and a statement below it by 1e-12 is refused with both numbers."""
    small_release.open()
    assert refusal(second_of(small_release, **statement)) == line
    assert second_of(small_release, **BOTH).open().state.ensemble is not None


@pytest.mark.parametrize("rows", [None, one_row_more()], ids=["same rows", "one row more"])
def test_a_second_release_with_a_statement_answers_beside_the_first(
    small_release: SmallRelease, rows: PrivateRows | None
) -> None:
    """Each keeps its own entries, answers and pieces, and both verify."""
    second = second_of(small_release, **BOTH)
    small_release.answerer([STABLE] * 2).answer_batch([ask(1), ask(2)])
    before = kinds(small_release)
    release = second.open(rows=rows)
    opened = release.state.release
    assert opened is not None
    assert opened.parameters["privacy.composed.epsilon"] == "40"
    assert opened.parameters["privacy.composed.delta"] == "1/50"
    assert kinds(small_release) == before
    repeated, fresh = small_release.answerer([STABLE]).answer_batch([ask(1), ask(3)])
    assert isinstance(repeated, RecordedAnswer)
    assert repeated.query_id == 1
    assert isinstance(fresh, Fresh)
    assert second.ledger().read_state().answered == 0
    assert (verify(small_release.ledger()).answered, verify(second.ledger()).answered) == (3, 0)


def test_neither_release_draws_at_a_restart(small_release: SmallRelease) -> None:
    """A restart of either compares its own rows and settings, and draws nothing."""
    second = second_of(small_release, **BOTH)
    rows = one_row_more()
    states = [small_release.open().state, second.open(rows=rows).state]
    for _ in range(2):
        assert small_release.open(noise=NoNoise()).state == states[0]
        assert second.open(rows=rows, noise=NoNoise()).state == states[1]
    with pytest.raises(ReleaseMismatchError, match=r"has 60 rows, .* opened on 61"):
        second.open(noise=NoNoise())
    assert shares(states[0]) == shares(states[1])


def test_the_fingerprints_of_two_releases_do_not_tell_that_their_rows_are_alike(
    small_release: SmallRelease,
) -> None:
    """They are in public entries, and whether two data sets are the same is private."""
    second = second_of(small_release, **BOTH)
    openings = [release.open().state.release for release in (small_release, second)]
    first_print, second_print = [opened.fingerprint for opened in openings if opened is not None]
    assert first_print != second_print


def test_a_statement_is_bound(small_release: SmallRelease) -> None:
    """A restart with another statement is refused, as with any other parameter."""
    small_release.open()
    second_of(small_release, **BOTH).open()
    other = second_of(small_release, **BOTH | {"privacy__composed__epsilon": "41"})
    with pytest.raises(ReleaseMismatchError, match=r"^privacy\.composed\.epsilon: .* 40, .* 41;"):
        other.open(noise=NoNoise())


def test_a_third_release_covers_all_three(small_release: SmallRelease) -> None:
    """The sum is over every release in the database, and the line names each."""
    small_release.open()
    second_of(small_release, **BOTH).open()
    third = changed(small_release, release__name="third")
    assert refusal(third) == (
        'release.name: no release "third" in the ledger, which holds "small" on the same rows, '
        '"second" on the same rows; correct the name, or open a further release by stating in '
        "[privacy.composed] what all promise together: at least epsilon = 60, delta = 0.03"
    )
    enough = {"privacy__composed__epsilon": "60", "privacy__composed__delta": "0.03"}
    stated = changed(third, **enough)
    assert budget_view(stated.open()).model_dump()["composed"] == {
        "epsilon": 60,
        "delta": 0.03,
        "releases": 3,
    }


def test_the_budget_shows_what_all_promise_together(small_release: SmallRelease) -> None:
    """Null for a release that is alone; the same for each, from its next commit on."""
    answerer = small_release.answerer([STABLE])
    assert budget_view(answerer.release).model_dump()["composed"] is None
    shown = budget_view(second_of(small_release, **BOTH).open()).model_dump()
    assert shown["epsilon"] == 20.0
    assert shown["composed"] == {"epsilon": 40.0, "delta": 0.02, "releases": 2}
    answerer.answer_batch([ask(1)])
    assert budget_view(answerer.release).model_dump()["composed"] == shown["composed"]
    assert budget_view(small_release.open()).model_dump()["composed"] == shown["composed"]


def test_a_release_that_is_alone_may_state_more(small_release: SmallRelease) -> None:
    """What other databases hold cannot be seen, and the operator may say it."""
    stated = changed(small_release, **BOTH)
    assert budget_view(stated.open()).model_dump()["composed"] == {
        "epsilon": 40.0,
        "delta": 0.02,
        "releases": 1,
    }


def test_the_largest_statement_is_what_is_promised(small_release: SmallRelease) -> None:
    """A later statement that covers the sum does not shrink an earlier one."""
    larger = {"privacy__composed__epsilon": "100", "privacy__composed__delta": "0.5"}
    changed(small_release, **larger).open()
    second = second_of(small_release, **BOTH).open()
    assert budget_view(second).model_dump()["composed"] == {
        "epsilon": 100.0,
        "delta": 0.5,
        "releases": 2,
    }


def overtake(
    monkeypatch: pytest.MonkeyPatch, late: SmallRelease, quick: SmallRelease
) -> Release | None:
    """Open ``late``, and ``quick`` between its look at the database and its transaction."""

    def overtaken(rule: str, rows: PrivateRows, key: bytes) -> str:
        monkeypatch.setattr(opening, "fingerprint_by", fingerprint_by)
        quick.open(noise=seeded_noise(5))
        return fingerprint_by(rule, rows, key)

    monkeypatch.setattr(opening, "fingerprint_by", overtaken)
    return late.open(noise=seeded_noise(6))


def test_of_two_second_releases_at_once_the_later_is_counted_again(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that covered two releases is refused where a third was quicker."""
    small_release.open()
    late = second_of(small_release, **BOTH)
    quick = changed(small_release, release__name="quick", **BOTH)
    with pytest.raises(ReleaseMismatchError, match=r"is 40, .* come to 60 with this one"):
        overtake(monkeypatch, late, quick)
    assert late.ledger().read_state().release is None


def test_of_two_first_releases_at_once_the_later_is_refused(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that found an empty database is a second one where another was quicker."""
    with pytest.raises(ReleaseMismatchError, match='no release "second" in the ledger'):
        overtake(monkeypatch, second_of(small_release), small_release)


def test_an_opening_that_was_overtaken_begins_again(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its statement covers them all, only the number has changed: nothing is charged."""
    late = second_of(small_release, **BOTH)
    with pytest.raises(LedgerUnavailableError, match="another release was opened"):
        overtake(monkeypatch, late, small_release)
    assert late.ledger().read_state().release is None
    assert late.open().state.ensemble is not None


def test_no_release_opens_beside_others_in_a_backup(small_release: SmallRelease) -> None:
    """What the ledger that goes on holds beside them cannot be seen in a copy."""
    small_release.open()
    elsewhere = small_release.folder / "elsewhere"
    elsewhere.mkdir()
    back_up(f"sqlite:///{small_release.folder / 'conclave.db'}", elsewhere / "conclave.db")
    assert refusal(second_of(SmallRelease(elsewhere), **BOTH)).startswith(
        'release.name: no release "second" in the ledger, which is a backup or was retired to be '
    )


def test_a_ledger_that_is_moved_meanwhile_takes_no_further_release(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a retirement ends while a second release opens is seen under the write lock."""
    small_release.open()

    def overtaken(rule: str, rows: PrivateRows, key: bytes) -> str:
        retire(small_release.ledger(), moves=True, noise=seeded_noise(4))
        return fingerprint_by(rule, rows, key)

    monkeypatch.setattr(opening, "fingerprint_by", overtaken)
    late = second_of(small_release, **BOTH)
    with pytest.raises(ReleaseMismatchError, match="cannot be seen; correct the name"):
        late.open(noise=seeded_noise(6))
    assert late.ledger().read_state().release is None


@pytest.mark.parametrize("moves", [False, True])
def test_a_further_release_opens_in_one_of_two_databases(
    small_release: SmallRelease,
    moves: bool,  # noqa: FBT001 -- two cases
) -> None:
    """Of a retired ledger and its copy one may hold further releases, whose sum it then sees."""
    small_release.open()
    code = retire(small_release.ledger(), moves=moves, noise=seeded_noise(4)).code
    place, copy = small_release.folder / "elsewhere", small_release.folder / "copy.db"
    place.mkdir()
    back_up(f"sqlite:///{small_release.folder / 'conclave.db'}", copy)
    restore(copy, f"sqlite:///{place / 'conclave.db'}", code=code)
    one, other = SmallRelease(place), small_release
    goes_on, is_left = (one, other) if moves else (other, one)
    assert "cannot be seen; correct the name" in refusal(second_of(is_left, **BOTH))
    assert len(second_of(goes_on, **BOTH).open().ledger.openings) == 2


def test_a_release_opens_beside_one_that_is_retired(small_release: SmallRelease) -> None:
    """Retiring gives no budget back: the statement counts what was promised."""
    small_release.open()
    retire(small_release.ledger(), moves=False, noise=seeded_noise(4))
    assert refusal(second_of(small_release)) == unstated(SAME)
    second = second_of(small_release, **BOTH).answerer([STABLE])
    second.answer_batch([ask(1)])
    assert second.release.state.answered == 1
    closed = small_release.ledger().read_state().closed
    assert closed is not None
    with pytest.raises(VerificationError, match="closed already"):
        retire(small_release.ledger(), moves=False, noise=seeded_noise(4))
    assert second.release.ledger.read_state().closed is None


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        (
            {"privacy__composed__epsilon": "40"},
            "privacy.composed.delta: is required: the other half of the budget is stated",
        ),
        (
            {"privacy__composed__delta": "0.02"},
            "privacy.composed.epsilon: is required: the other half of the budget is stated",
        ),
        (
            BOTH | {"privacy__composed__epsilon": "19.999999999999"},
            "privacy.composed.epsilon: is below privacy.epsilon, which it covers",
        ),
        (
            BOTH | {"privacy__composed__delta": "0.0099"},
            "privacy.composed.delta: is below privacy.delta, which it covers",
        ),
    ],
)
def test_half_a_statement_is_bad_configuration(
    small_release: SmallRelease, statement: dict[str, str], line: str
) -> None:
    """A statement has both numbers, and neither is below the release's own."""
    with pytest.raises(ConfigurationError) as refused:
        changed(small_release, **statement).settings()
    assert str(refused.value) == line


def test_an_operator_is_told_of_the_sum_once(small_release: SmallRelease) -> None:
    """One line for a release beside others, and none for one that is alone."""
    lines: list[str] = []
    warn_of_others(small_release.open().ledger.openings, lines.append)
    assert lines == []
    warn_of_others(second_of(small_release, **BOTH).open().ledger.openings, lines.append)
    (line,) = lines
    assert line == (
        "2 releases share this ledger; about a person in the rows of each they promise "
        "epsilon 40, delta 0.02"
    )


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Fraction(12), "12"),
        (Fraction(200), "200"),
        (Fraction(1, 50), "0.02"),
        (Fraction(2, 10**12), "2e-12"),
        (Fraction(10**40 + 1, 10**50), f"1.{'0' * 39}1e-10"),
        (Fraction(1, 3), "1/3"),
    ],
)
def test_costs_are_written_exactly(cost: Fraction, text: str) -> None:
    """A decimal as a configuration takes it, however long; a fraction where there is none."""
    assert exact_text(cost) == text
