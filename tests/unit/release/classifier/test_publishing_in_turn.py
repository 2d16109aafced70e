"""A classifier to which every generation adds steps before it joins: draws, entries, restarts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError, LedgerCorruptError
from app.learning.linear.kernel_scores import KernelInputs
from app.ledger.entries.entry_kinds import ClassifierPublished2
from app.ledger.entries.generations import generations_of
from app.ledger.verification import verify
from app.main import learn_from_settings
from app.noise.scripted import ScriptedNoise
from app.release.generations.appending import shares_of
from app.release.generations.classifier_contribution import Part, generation_draw, mean_share
from app.release.generations.score_inputs import (
    PublicInputs,
    known_inputs,
    opened_descent,
    read_inputs,
)
from app.release.generations.tick import NotFittedError, Ticker
from app.release.generations.waiting_fits import WaitingFits
from app.release.generations.waiting_requests import erasures_of, take_down
from app.release.views.budget import budget_view
from app.release.views.stated_release import read_stated
from app.release.views.statement import PUBLISHED_IN_TURN, statement
from tests.builders.ledger.outside_audit import faults_in
from tests.builders.release.growing_release import GrowingRelease
from tests.builders.release.named_rows import NamedRelease, slots_of
from tests.builders.release.small_release import private_rows, seeded_noise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from app.release.generations.generations_release import LivingRelease
    from tests.builders.release.growing_release import GrowingAnswerer

PUBLISHES: Final = {
    "privacy__shares__answers": "0.6",
    "privacy__shares__classifier": "0.3",
    "classifier__learner": "linear",
}


@pytest.fixture
def growing(tmp_path: Path) -> GrowingRelease:
    """Return the release of a temporary folder, yet to be opened, that publishes."""
    return GrowingRelease(tmp_path, PUBLISHES)


def newest(release: LivingRelease) -> ClassifierPublished2:
    """Return the newest entry with a classifier."""
    event = release.state.classifier
    assert isinstance(event, ClassifierPublished2)
    return event


def check(ledger: Ledger) -> list[str]:
    """Verify the ledger, from inside and from its public entries alone; return their kinds."""
    verify(ledger)
    entries = ledger.public_entries(0, 1000)
    assert faults_in(entries) == []
    return [str(entry["kind"]) for entry in entries]


def test_a_generation_publishes_before_it_joins(growing: GrowingRelease) -> None:
    """Two that are due together follow one another, and the newest classifier serves."""
    answerer = growing.answerer()
    release, first = answerer.living, newest(answerer.living)
    assert release.classifier is not None
    assert release.classifier.json.decode() == first.classifier
    for seed in (11, 12):
        growing.append(release.ledger, seed=seed)
    growing.pass_periods(answerer, 2)
    third = newest(release)
    assert (first.number, third.number) == (1, 3)
    assert release.classifier.json.decode() == third.classifier != first.classifier
    kinds = check(release.ledger)
    assert kinds[1:6] == [
        "GenerationAppended",
        "LabellingDrawn",
        "ClassifierPublished",
        "SlotsChanged",
        "GenerationsJoined",
    ]
    assert kinds[-6:-2] == ["LabellingDrawn", "ClassifierPublished"] * 2
    charged = {each.mechanism.value: each.epsilon for each in budget_view(release).charged}
    assert charged["classifier"] == 6.0  # three tenths of 20, once and not three times


def test_a_restart_draws_nothing_and_goes_on_from_there(growing: GrowingRelease) -> None:
    """The newest classifier is read back, and the next generation starts where it arrived."""
    before = growing.answerer().living
    before.ledger.close()
    again = growing.answerer()
    assert newest(again.living) == newest(before)
    growing.append(again.release.ledger)
    growing.pass_periods(again, 1)
    ticker = growing.ticker(again.release.ledger)
    ticker.fit_waiting()
    (fitted,) = ticker.waiting.private_fitted.values()
    assert fitted.part is not None
    assert fitted.part.start == newest(before).weights


def test_waves_are_drawn_once_and_shared_by_all_generations(tmp_path: Path) -> None:
    """Learner kernel: the coins are kept with the map, so that weights of all mean the same."""
    growing = GrowingRelease(tmp_path, {**PUBLISHES, "classifier__learner": "kernel"})
    answerer = growing.answerer(generations=2)
    release, second = answerer.living, newest(answerer.living)
    assert second.number == 2
    known = read_inputs(release.ledger)
    assert isinstance(known.inputs, KernelInputs)
    body = known.to_bytes()
    assert PublicInputs.from_bytes(body).to_bytes() == body
    first, other = (
        generation_draw(release.configuration, known, each)
        for each in generations_of(release.state.generations).all
    )
    assert first.parameters.features is other.parameters.features is known.features
    check(release.ledger)
    release.ledger.close()
    again = growing.answerer()
    assert newest(again.living) == second
    assert read_inputs(again.release.ledger).to_bytes() == body
    growing.append(again.release.ledger, seed=30)
    growing.pass_periods(again, 2)
    third = newest(again.living)
    assert third.number == 3
    published = json.loads(third.classifier)
    assert published["scores"]["waves"]
    assert again.living.classifier is not None
    assert again.living.classifier.predict((40.0, "a")) in again.release.schema.classes
    check(again.release.ledger)


def test_the_mean_is_of_the_later_and_the_larger(growing: GrowingRelease) -> None:
    """Alike, generation g counts as g; one of half the records, a quarter as much."""
    release = growing.answerer(generations=3).living
    known = generations_of(release.state.generations).all
    assert mean_share(known[:1]) == 1.0
    assert mean_share(known) == pytest.approx(1 / 2)
    half = msgspec.structs.replace(known[1], slots=known[1].slots // 2)
    assert mean_share((known[0], half)) == pytest.approx(1 / 3)
    unpaid = msgspec.structs.replace(known[0], shares={"answers": ["1", "0"]})
    assert mean_share((unpaid, known[1])) == 1.0


def test_without_a_share_nothing_is_published(tmp_path: Path) -> None:
    """No map is kept, and no entry has a classifier."""
    release = GrowingRelease(tmp_path).answerer().living
    assert release.classifier is None
    assert "classifier-map" not in release.state.private_digests
    assert "ClassifierPublished" not in check(release.ledger)


def test_the_public_inputs_are_kept_as_they_were(growing: GrowingRelease) -> None:
    """Integers and cuts come back to the last bit; anything else is refused."""
    public = growing.folder / "public.csv"
    settings = growing.small.settings()
    names = [feature.name for feature in settings.data.features]
    rows = private_rows(seed=99)
    points = [",".join(f"{each:g}" for each in row) for row in rows.values[:40]]
    public.write_text("\n".join([",".join(names), *points]) + "\n", encoding="utf-8")
    growing.changes = {**growing.changes, "classifier__public": str(public)}
    configuration = growing.small.configuration()
    prepared = opened_descent(configuration, private_rows(), lambda _: None)
    assert prepared is not None
    found = known_inputs(prepared, ScriptedNoise([]))  # no coin is drawn
    back = PublicInputs.from_bytes(found.to_bytes())
    assert back.to_bytes() == found.to_bytes()
    assert np.array_equal(back.features.matrix, found.features.matrix)
    assert back.inputs.encode(rows.values).tolist() == found.inputs.encode(rows.values).tolist()
    release = growing.answerer().living
    assert read_inputs(release.ledger).to_bytes() == found.to_bytes()
    with pytest.raises(LedgerCorruptError, match="is none"):
        PublicInputs.from_bytes(b"\x01")
    growing.changes = {**growing.changes, "classifier__public": str(public) + "x"}
    with pytest.raises(ConfigurationError, match="cannot read") as refused:
        opened_descent(growing.small.configuration(), private_rows(), lambda _: None)
    assert refused.value.key == "classifier.public"


def test_the_noise_is_for_the_public_slots_and_the_charge_of_the_append(
    growing: GrowingRelease,
) -> None:
    """What the entry charges is what the draw takes, whatever the slots hold."""
    release = growing.answerer().living
    (first,) = generations_of(release.state.generations).all
    drawn = generation_draw(release.configuration, read_inputs(release.ledger), first)
    calibration = drawn.parameters.calibration
    charged = shares_of(release.configuration, 1)["classifier"]
    assert [str(calibration.epsilon), str(calibration.delta)] == charged
    assert drawn.parameters.row_count == first.slots


def test_a_generation_with_holes_draws_on_what_is_left(tmp_path: Path) -> None:
    """A record that was forgotten while it waited adds nothing; n stays the number of slots."""
    growing = NamedRelease(tmp_path, PUBLISHES)
    answerer = growing.answerer()
    ledger = answerer.release.ledger
    growing.append(ledger)
    kept = slots_of(ledger, 2)
    emptied = kept.changed([0, 1], {})
    assert emptied.held_rows().count == kept.count - 2
    drawn = generation_draw(
        answerer.release.configuration,
        read_inputs(ledger),
        generations_of(ledger.read_state().generations).all[1],
    )
    assert drawn.descend(emptied.held_rows(), seeded_noise(1)).values.shape[1] == 1
    with pytest.raises(InvariantError, match="of the public n rows"):
        drawn.descend(private_rows(count=kept.count + 1), seeded_noise(1))


def test_conclave_learn_is_refused_in_one_line(growing: GrowingRelease) -> None:
    """The server draws each generation's part; nothing is charged by a command."""
    with pytest.raises(ConfigurationError, match="conclave learn"):
        learn_from_settings(growing.small.settings(), public=None, noise=seeded_noise(1))


def test_the_statement_says_how_parts_add_up(growing: GrowingRelease) -> None:
    """A record is charged for one part, however many generations follow."""
    stated = read_stated(growing.small.configuration(), None, audit=None, version="0")
    lines = {line.place: line.words for line in statement(stated)}
    assert lines["classifier.published"] == PUBLISHED_IN_TURN


# -- planted faults ------------------------------------------------------------


def _due(growing: GrowingRelease) -> tuple[GrowingAnswerer, Ticker]:
    """Return a release whose second and third generation are fitted, and due at the next tick."""
    answerer = growing.answerer()
    ticker = growing.ticker(answerer.release.ledger)
    for seed in (11, 12):
        growing.append(answerer.release.ledger, seed=seed)
    growing.now += 120
    ticker.fit_waiting()
    return answerer, ticker


def _elsewhere(fits: WaitingFits) -> None:
    """Draw the second's part again, and keep the third's, which rests on the first draw."""
    second = fits.private_fitted[2]
    assert second.part is not None
    weights = [[each + 1 for each in row] for row in second.part.event.weights]
    event = msgspec.structs.replace(second.part.event, weights=weights)
    fits.private_fitted[2] = replace(second, part=Part(second.part.start, event))


def _other_start(fits: WaitingFits) -> None:
    """Start the second from weights that were never published."""
    second = fits.private_fitted[2]
    assert second.part is not None
    fits.private_fitted[2] = replace(second, part=Part([[1]], second.part.event))


def _cold(fits: WaitingFits) -> None:
    """Leave out what was published before."""
    second = fits.private_fitted[2]
    assert second.part is not None
    fits.private_fitted[2] = replace(second, part=Part(None, second.part.event))


@pytest.mark.parametrize("fault", [_elsewhere, _other_start, _cold])
def test_a_start_that_nobody_was_shown_is_not_published(
    growing: GrowingRelease, fault: Callable[[WaitingFits], None]
) -> None:
    """A draw that was forgotten would else be seen through the next one, at no charge."""
    answerer, ticker = _due(growing)
    head = answerer.release.ledger.read_state().head
    fault(ticker.waiting)
    with pytest.raises(NotFittedError):
        answerer.tick(ticker)
    assert answerer.release.ledger.read_state().head == head


def test_what_rests_on_a_forgotten_draw_is_forgotten_with_it(growing: GrowingRelease) -> None:
    """The third generation's part is drawn anew where the second's is."""
    _, ticker = _due(growing)
    ticker.waiting.forget_from(2)
    assert ticker.waiting.private_fitted == {}
    ticker.fit_waiting()
    second, third = (ticker.waiting.private_fitted[number].part for number in (2, 3))
    assert second is not None
    assert third is not None
    assert third.start == second.event.weights


def test_published_when_the_draw_is_ready_is_refused(growing: GrowingRelease) -> None:
    """The fault of a server that does not wait for the tick: the fold takes no such entry."""
    answerer, ticker = _due(growing)
    part = ticker.waiting.private_fitted[2].part
    assert part is not None
    with (
        pytest.raises(InvariantError, match="before the labels"),
        answerer.release.ledger.transaction() as transaction,
    ):
        transaction.append(part.event)


def test_an_erasure_draws_nothing_anew(tmp_path: Path) -> None:
    """Neither before the join nor after: the part used one version of the slot, once."""
    growing = NamedRelease(tmp_path, PUBLISHES)
    answerer = growing.answerer()
    ledger, first = answerer.release.ledger, newest(answerer.living)
    ticker = growing.ticker(ledger)
    growing.append(ledger)
    ticker.fit_waiting()
    drawn = ticker.waiting.private_fitted[2].part
    take_down(ledger, erasures_of(ledger, ["a0", "b0"]))
    growing.now += 60
    ticker.fit_waiting()
    answerer.tick(ticker)
    assert ticker.waiting.private_fitted[2].part is drawn
    assert newest(answerer.living) == first
    growing.now += 60
    ticker.fit_waiting()
    answerer.tick(ticker)
    assert drawn is not None
    assert newest(answerer.living) == drawn.event


def test_drawn_anew_at_a_tick_is_seen_from_outside(
    growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the fold is at fault too, two classifiers of one generation stand in the entries."""
    answerer = growing.answerer()
    event = newest(answerer.living)
    monkeypatch.setattr("app.ledger.entries.generations.published", lambda known, _: known)
    with answerer.release.ledger.transaction() as transaction:
        transaction.append(event)
    entries: list[dict[str, Any]] = answerer.release.ledger.public_entries(0, 1000)
    assert faults_in(entries) == ["classifier of 1, which has joined", "classifier of 1 again"]
    assert json.loads(event.classifier)["format"] == "conclave-classifier"
