"""The parameters in words: all that a release has, none that it has not, public ones alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.learning.registry import CLASSES
from app.release.views.parameters_in_words import explained
from tests.builders.release.svt_release import NOISY_COUNTS, NOISY_VOTE, REFRESHED, SVT, changed

if TYPE_CHECKING:
    from tests.builders.release.small_release import SmallRelease


def texts(release: SmallRelease) -> dict[str, tuple[str, str, str]]:
    """Return value, meaning and formula of each parameter, by name."""
    found = explained(release.open())
    names = [each.name for each in found]
    assert len(set(names)) == len(names)
    return {each.name: each[1:] for each in found}


def test_every_parameter_has_words_and_a_formula(small_release: SmallRelease) -> None:
    """Each is a sentence or more, with a value and a formula."""
    for value, meaning, formula in texts(small_release).values():
        assert value
        assert formula
        assert meaning.endswith(".")


def test_it_says_what_the_release_promises(small_release: SmallRelease) -> None:
    """Epsilon, delta, k, m and T are those of the release."""
    found = texts(small_release)
    assert found["epsilon (ε)"][0] == "20"
    assert found["delta (δ)"][0] == "0.01"
    assert found["ensemble (k)"][0] == "5 learners"
    assert found["limit of answers (m)"][0] == "4 answers"
    assert found["cutoff (T)"][0] == "2 unstable answers"
    assert "new queries are refused" in found["cutoff (T)"][1]
    assert "a classifier is published" in found["limit of answers (m)"][1]
    assert found["unstable answers"][0] == "no label"


def test_the_lead_of_the_profile_is_in_votes(small_release: SmallRelease) -> None:
    """The lead is the smallest at which the table's probability is below one in a hundred."""
    release = small_release.open()
    thresholds = release.mechanism.answering.thresholds  # type: ignore[union-attr]  # a profile's
    lead = int(texts(small_release)["stability test"][0].split()[-2])
    distance = max(0, -(-lead // 2) - 1)
    assert thresholds[distance] < 0.01 * 2**64 <= thresholds[distance - 1]


@pytest.mark.parametrize(
    ("changes", "there", "absent"),
    [
        (SVT, {"stability test", "cutoff (T)"}, {"noisy vote"}),
        (REFRESHED, {"stability test", "cutoff (T)"}, {"noisy vote"}),
        (NOISY_VOTE, {"noisy vote"}, {"stability test", "cutoff (T)", "drain alarm"}),
        (NOISY_COUNTS, {"noisy vote"}, {"stability test", "cutoff (T)", "drain alarm"}),
        (
            {"privacy__shares__answers": "0", "privacy__shares__relabel": "0"},
            {"share of classifier"},
            {"ensemble (k)", "share of relabel", "limit of answers (m)"},
        ),
        ({"answers__output": "score"}, {"cutoff (T)", "drain alarm"}, set()),
        ({"answers__cutoff": "4"}, {"cutoff (T)", "forecast"}, {"drain alarm"}),
    ],
)
def test_it_says_what_this_release_has(
    small_release: SmallRelease, changes: dict[str, str], there: set[str], absent: set[str]
) -> None:
    """A mechanism that does not run is not explained."""
    found = texts(changed(small_release, changes))
    assert there <= found.keys()
    assert not absent & found.keys()


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({}, "a tree is drawn with weight"),
        ({"classifier__class": "thresholds"}, "a threshold is drawn with weight"),
        ({"classifier__class": "stumps"}, "a tree of one test is drawn"),
        ({"classifier__class": "intervals"}, "an interval is drawn with weight"),
        ({"classifier__learner": "linear"}, "every step descends by a sum over all records"),
        ({"classifier__learner": "kernel"}, "every step descends by a sum over all records"),
    ],
)
def test_it_says_what_is_published(
    small_release: SmallRelease, changes: dict[str, str], drawn: str
) -> None:
    """Of each class what is drawn, and of learners that descend how they learn."""
    _, meaning, formula = texts(changed(small_release, changes))["share of classifier"]
    assert meaning.startswith("Pays for the published classifier")
    assert formula.startswith(drawn)


def test_every_class_has_a_word() -> None:
    """What is drawn of a class is said in words of its own."""
    assert len({row.drawn for row in CLASSES.values()}) == len(CLASSES)


def test_scores_have_units(small_release: SmallRelease) -> None:
    """The cutoff of scores counts units, and the coin of labels is told of where it is tossed."""
    found = texts(changed(small_release, {"answers__output": "score"}))
    assert found["cutoff (T)"][0] == "2 units"


def test_a_coin_is_said_to_be_one(small_release: SmallRelease) -> None:
    """An unstable answer with a fair label is told as a label by lot."""
    found = texts(changed(small_release, {"answers__unstable": "coin"}))
    assert found["unstable answers"][0] == "a random label"


def test_large_numbers_are_written_by_their_powers(small_release: SmallRelease) -> None:
    """An epsilon whose factor is beyond a million, and a small delta, are easy to read."""
    changes = {"privacy__delta": "1e-5", "privacy__epsilon": "40"}
    found = texts(changed(small_release, changes))
    assert found["delta (δ)"][0] == "1e-5"
    assert "than 2.35e17 times" in found["epsilon (ε)"][1]
