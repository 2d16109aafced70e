"""What a release is bound to, and the line that names what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.errors import ReleaseMismatchError
from app.release.terms.bound_settings import BOUND_SECTIONS, UNBOUND, bound_parameters, check_bound
from app.settings.settings import SECTIONS, load_settings
from tests.builders.release.small_release import CONFIGURATION, SmallRelease

RESTORE = "restore it, or give the new release a name of its own"


def bound(folder: Path, text: str = CONFIGURATION, **changes: str) -> dict[str, str]:
    """Return what a configuration binds."""
    path = folder / "conclave.toml"
    path.write_text(text, encoding="utf-8")
    environ = {f"CONCLAVE_{name}".upper(): value for name, value in changes.items()}
    return bound_parameters(load_settings(path, environ))


@pytest.mark.parametrize(
    ("changes", "key", "was", "is_now"),
    [
        ({"release__name": "large"}, "release.name", '"small"', '"large"'),
        ({"privacy__epsilon": "21"}, "privacy.epsilon", "20", "21"),
        ({"privacy__delta": "1e-3"}, "privacy.delta", "1/100", "1/1000"),
        ({"privacy__shares__relabel": "0.05"}, "privacy.shares.relabel", "1/10", "1/20"),
        ({"answers__queries": "5"}, "answers.queries", "4", "5"),
        ({"answers__cutoff": "3"}, "answers.cutoff", "2", "3"),
        ({"answers__ensemble": "auto"}, "answers.ensemble", "5", '"auto"'),
        ({"answers__unstable": "coin"}, "answers.unstable", '"abstain"', '"coin"'),
        ({"answers__after": "halt"}, "answers.after", '"classifier"', '"halt"'),
        ({"hypotheses__depth": "2"}, "hypotheses.depth", "1", "2"),
        ({"learner__rule": "halving"}, "learner.rule", '"canonical"', '"halving"'),
        ({"classifier__bins": "3"}, "classifier.bins", "16", "3"),
        ({"privacy__sampling": "0.5"}, "privacy.sampling", "absent", "1/2"),
        ({"hypotheses__grid": "private"}, "hypotheses.grid", "absent", '"private"'),
        (
            {"privacy__composed__epsilon": "40", "privacy__composed__delta": "0.5"},
            "privacy.composed.delta",
            "absent",
            "1/2",
        ),
        ({"data__label": "reply"}, "data.label", '"answer"', '"reply"'),
        ({"data__missing": '["-"]'}, "data.missing", '["?"]', '["-"]'),
        ({"data__classes": '["yes", "no"]'}, "data.classes", '["no","yes"]', '["yes","no"]'),
    ],
)
def test_a_changed_setting_is_named(
    tmp_path: Path, changes: dict[str, str], key: str, was: str, is_now: str
) -> None:
    """One line says which setting differs, what it was and what it is."""
    with pytest.raises(ReleaseMismatchError) as differs:
        check_bound(bound(tmp_path), bound(tmp_path, **changes))
    assert str(differs.value) == (
        f"{key}: the ledger's release was opened with {was}, the configuration says {is_now}; "
        f"{RESTORE}"
    )


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("bounds = [-50, 50]", "bounds = [-50, 51]", "data.features.margin.bounds"),
        ("[-25, 0, 25]", "[-25, 1, 25]", "data.features.margin.thresholds"),
        ('["a", "b"]', '["b", "a"]', "data.features.group.categories"),
        ('name = "group"', 'name = "herd"', "data.features"),
    ],
)
def test_a_changed_feature_is_named(tmp_path: Path, old: str, new: str, key: str) -> None:
    """A feature's own settings go by its name, and the order of the names is bound."""
    with pytest.raises(ReleaseMismatchError) as differs:
        check_bound(bound(tmp_path), bound(tmp_path, CONFIGURATION.replace(old, new)))
    assert differs.value.key == key


@pytest.mark.parametrize(
    "changes",
    [
        {"data__source": "elsewhere.csv"},
        {"data__rows": "12"},
        {"answers__alpha": "0.2"},
        {"answers__beta": "0.2"},
        {"answers__reply_padding_milliseconds": "7"},
        {"ledger__url": "sqlite:///elsewhere.db"},
        {"server__port": "9000"},
        {"privacy__epsilon": "20.00"},
        {"privacy__shares__relabel": "0.10"},
        {"privacy__delta": "0.01"},
    ],
)
def test_what_promises_nothing_is_free_to_change(tmp_path: Path, changes: dict[str, str]) -> None:
    """Where rows and clients are, planning, padding, and how a number is written."""
    check_bound(bound(tmp_path), bound(tmp_path, **changes))


def test_an_absent_setting_is_named_as_such(tmp_path: Path) -> None:
    """A setting that an older release did not bind, or a newer one, is said to be absent."""
    given = bound(tmp_path)
    with pytest.raises(ReleaseMismatchError, match=r"answers\.cutoff.*opened with absent"):
        check_bound({key: given[key] for key in given.keys() - {"answers.cutoff"}}, given)
    with pytest.raises(ReleaseMismatchError, match="the configuration says absent"):
        check_bound({**given, "answers.further": "1"}, given)


def test_an_empty_table_is_not_an_absent_one(tmp_path: Path) -> None:
    """``classifier.tests = {}`` says that there are none; unset, they are inherited."""
    listed = {"hypotheses__tests": '{"group": ["a"]}'}
    inherited = bound(tmp_path, **listed)
    none = bound(tmp_path, **listed, classifier__tests="{}")
    assert inherited["classifier.tests.group"] == '["a"]'
    assert "classifier.tests.group" not in none
    assert bound(tmp_path, learner__params="{}") == bound(tmp_path)


def test_a_default_may_be_written_out(tmp_path: Path) -> None:
    """What is in force is bound: its default, once written, changes nothing."""
    written = bound(tmp_path, classifier__depth="1", privacy__delta_shares__answers="1")
    check_bound(bound(tmp_path), written)


def test_a_ledger_opened_before_a_setting_existed_still_opens(tmp_path: Path) -> None:
    """What was bound before a setting was added is what is bound at its default today."""
    path = Path(__file__).parent / "bound_before.json"
    before = json.loads(path.read_text(encoding="utf-8"))
    check_bound(before, bound(tmp_path))
    check_bound(before, bound(tmp_path, privacy__sampling="1.0", hypotheses__grid="public"))


def test_what_the_papers_calibration_is_made_from_is_bound_with_it(tmp_path: Path) -> None:
    """There the accuracy asked for sets the noise, so that it cannot change."""
    paper = {"privacy__calibration": "paper"}
    with pytest.raises(ReleaseMismatchError) as differs:
        check_bound(bound(tmp_path, **paper), bound(tmp_path, **paper, answers__alpha="0.2"))
    assert differs.value.key == "answers.alpha"


def test_every_section_is_bound_or_free_on_purpose(small_release: SmallRelease) -> None:
    """A new section has to be put on one side; what is unbound does exist."""
    assert SECTIONS - set(BOUND_SECTIONS) == {
        "classifier",
        "generations",
        "engine",
        "erasure",
        "statistics",
        "ledger",
        "logs",
        "server",
        "student",
        "telemetry",
    }
    settings = small_release.settings()
    for key in UNBOUND:
        section, name = key.split(".")
        assert name in type(getattr(settings, section)).model_fields


def test_statistics_are_bound_where_they_have_a_share(tmp_path: Path) -> None:
    """Without one the section is free, as in ledgers of before; with one, what is in force is."""
    free = bound(tmp_path, statistics__updates="3", statistics__class="stumps")
    assert free == bound(tmp_path)
    shares = {"privacy__shares__answers": "0.5", "privacy__shares__statistics": "0.1"}
    with_share = bound(tmp_path, **shares)
    assert with_share["statistics.class"] == '"trees"'
    assert with_share["statistics.depth"] == "1"
    assert bound(tmp_path, **shares, statistics__depth="1") == with_share
    with pytest.raises(ReleaseMismatchError, match=r"^statistics\.updates: "):
        check_bound(with_share, bound(tmp_path, **shares, statistics__updates="3"))


def test_nothing_private_is_bound(tmp_path: Path) -> None:
    """The address of the rows, which may hold a password, is not among public parameters."""
    assert "elsewhere" not in str(bound(tmp_path, data__source="elsewhere.csv"))
