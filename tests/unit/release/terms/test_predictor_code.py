"""Predictors of the operator's own: named by settings, bound by their source files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import ConfigurationError, ReleaseMismatchError
from app.learning.enumerated.enumerated_class import EnumeratedClass, EnumeratedHypothesis
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.release.classifier.published_classifier import publish_drawn, read_published
from app.release.terms.bound_settings import bound_parameters, check_bound, predictor_source
from app.release.terms.configuration import configure, public_class, published_class
from app.settings.settings import Settings, load_settings
from tests.builders.release.small_release import CONFIGURATION

if TYPE_CHECKING:
    from pathlib import Path

CODE = """\
def is_above(row):
    return "yes" if row["margin"] >= 0 else "no"


def is_in_a(row):
    return "yes" if row["group"] == "a" else "no"
"""
FINITE = 'class = "finite"\npredictors = ["rules_of_ours:is_above", "rules_of_ours:is_in_a"]'


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a module of predictors where Python finds it."""
    path = tmp_path / "rules_of_ours.py"
    path.write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rules_of_ours", raising=False)
    return path


def settings_of(folder: Path, chosen: str = FINITE, **changes: str) -> Settings:
    """Return the settings of a small release with another class."""
    path = folder / "conclave.toml"
    line = next(line for line in CONFIGURATION.splitlines() if line.startswith("class = "))
    path.write_text(CONFIGURATION.replace(line, chosen), encoding="utf-8")
    environ = {f"CONCLAVE_{name}".upper(): value for name, value in changes.items()}
    return load_settings(path, environ)


def test_other_classes_have_no_code(tmp_path: Path) -> None:
    """A class of Conclave's own is bound to no source file."""
    settings = settings_of(tmp_path, 'class = "stumps"')
    schema = settings.data.public_schema()
    assert predictor_source("hypotheses", settings.hypotheses, schema) is None
    assert not [key for key in bound_parameters(settings) if ".code." in key]


def test_predictors_know_the_public_schema(tmp_path: Path) -> None:
    """Names, bounds and categories of every feature, and the classes, are handed down."""
    settings = settings_of(tmp_path)
    source = predictor_source("hypotheses", settings.hypotheses, settings.data.public_schema())
    assert source is not None
    assert source.classes == settings.data.classes
    assert [feature.name for feature in source.features] == ["margin", "group"]
    assert source.features[0].bounds == (-50.0, 50.0)
    assert source.features[1].categories == ("a", "b")


def test_changed_code_is_named(tmp_path: Path, code: Path) -> None:
    """A release does not go on by predictors that are not those it was opened with."""
    settings = settings_of(tmp_path)
    opened = bound_parameters(settings)
    check_bound(opened, bound_parameters(settings))
    code.write_text(CODE.replace(">= 0", ">= 1"), encoding="utf-8")
    line = r"^hypotheses\.code\.rules_of_ours: .* opened with sha256:\w{64}, .* sha256:\w{64};"
    with pytest.raises(ReleaseMismatchError, match=line):
        check_bound(opened, bound_parameters(settings))


def test_the_published_class_is_bound_by_its_own_code(tmp_path: Path, code: Path) -> None:
    """A class of [classifier] alone is bound too."""
    assert code.is_file()
    changes = {"classifier__class": "finite", "classifier__predictors": '["rules_of_ours:is_in_a"]'}
    bound = bound_parameters(settings_of(tmp_path, 'class = "stumps"', **changes))
    assert bound["classifier.code.rules_of_ours"].startswith("sha256:")
    assert "hypotheses.code.rules_of_ours" not in bound


@pytest.mark.parametrize("module", ["nowhere_to_be_found", "nowhere.to_be.found"])
def test_code_that_is_not_there_is_one_line(tmp_path: Path, module: str) -> None:
    """The setting is named, and where Python looks."""
    settings = settings_of(tmp_path, f'class = "{module}:Class"')
    with pytest.raises(ConfigurationError, match=r"hypotheses\.class: .* see hypotheses\.path"):
        bound_parameters(settings)
    with pytest.raises(ConfigurationError, match=r"hypotheses\.class: importing .* failed"):
        configure(settings)


def test_code_is_found_in_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hypotheses.path` suffices, for a package in it too, and a release does not bind it."""
    before = [*sys.path]
    monkeypatch.setattr(sys, "path", [*before])
    for folder in ("rules", "moved"):
        (tmp_path / folder / "rules_in_a_folder").mkdir(parents=True)
        (tmp_path / folder / "rules_in_a_folder" / "ours.py").write_text(CODE, encoding="utf-8")
    found = 'class = "finite"\npredictors = ["rules_in_a_folder.ours:is_above"]\npath = '
    settings = settings_of(tmp_path, f'{found}"rules"')
    bound = bound_parameters(settings)
    assert configure(settings).hypotheses.size == 1
    assert bound["hypotheses.code.rules_in_a_folder.ours"].startswith("sha256:")
    assert bound["classifier.code.rules_in_a_folder.ours"].startswith("sha256:")
    assert not [key for key in bound if key.endswith(".path")]
    assert sys.path == [*before, str(tmp_path / "rules")]
    # As another process would find it, elsewhere.
    monkeypatch.setattr(sys, "path", [*before])
    for module in ("rules_in_a_folder", "rules_in_a_folder.ours"):
        monkeypatch.delitem(sys.modules, module)
    check_bound(bound, bound_parameters(settings_of(tmp_path, f'{found}"moved"')))
    monkeypatch.delitem(sys.modules, "rules_in_a_folder")


def test_a_path_is_the_configurations_or_the_environments(tmp_path: Path) -> None:
    """The file's path starts at its folder; a folder that is not there is one line."""
    written = settings_of(tmp_path, f'{FINITE}\npath = "rules"')
    assert written.hypotheses.path == written.published.path == tmp_path / "rules"
    named = settings_of(tmp_path, FINITE, hypotheses__path=str(tmp_path / "others"))
    assert named.hypotheses.path == tmp_path / "others"
    with pytest.raises(ConfigurationError, match=r"hypotheses\.path: .*others is no folder"):
        bound_parameters(named)


def test_a_path_is_for_predictors_of_ones_own(tmp_path: Path) -> None:
    """Beside classes of Conclave's own it is refused, beside a published one of yours it is not."""
    with pytest.raises(
        ConfigurationError, match=r"hypotheses\.path: is for predictors of your own"
    ):
        settings_of(tmp_path, 'class = "stumps"\npath = "."')
    changes = {"classifier__class": "finite", "classifier__predictors": '["rules_of_ours:is_in_a"]'}
    other = settings_of(tmp_path, 'class = "stumps"\npath = "rules"', **changes)
    assert other.published.path == tmp_path / "rules"
    with pytest.raises(ConfigurationError, match=r"^hypotheses\.path: .*rules is no folder$"):
        published_class(other, np.zeros((0, 2)))


def test_a_name_that_is_taken_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that another module hides is refused, and hides no other module itself."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "csv.py").write_text(CODE, encoding="utf-8")
    settings = settings_of(tmp_path, 'class = "csv:Class"\npath = "."')
    with pytest.raises(ConfigurationError, match=r"hypotheses\.class: csv is the name of another"):
        bound_parameters(settings)


def test_code_without_a_source_file_says_so(tmp_path: Path) -> None:
    """A built-in module is bound by its name alone."""
    settings = settings_of(tmp_path, 'class = "sys:Class"')
    assert bound_parameters(settings)["hypotheses.code.sys"] == "no source file"


def test_a_class_is_configured_from_its_code(tmp_path: Path, code: Path) -> None:
    """The public class, and the published one on public points, are the functions listed."""
    assert code.is_file()
    settings = settings_of(tmp_path)
    assert configure(settings).hypotheses.size == 2
    assert public_class(settings).size == 2
    alike = np.array([[5.0, 0.0], [7.0, 0.0]])
    assert published_class(settings, alike).size == 1
    assert published_class(settings, alike[:0]).size == 2


def test_a_predictor_is_published_by_name_and_predicts_after_a_restart(
    tmp_path: Path, code: Path
) -> None:
    """The document holds the description; the code predicts as it did in the class."""
    assert code.is_file()
    settings = settings_of(tmp_path)
    schema, hypotheses = settings.data.public_schema(), public_class(settings)
    assert isinstance(hypotheses, EnumeratedClass)
    for index, labels in enumerate((["yes", "no", "no", "yes"], ["yes", "yes", "no", "no"])):
        drawn = EnumeratedHypothesis(hypotheses.hypotheses.take(np.array([index])), index)
        published = publish_drawn(release="r", schema=schema, hypotheses=hypotheses, drawn=drawn)
        restored = read_published(ClassifierPublished(classifier=published.json.decode()))
        assert restored.document.version == 2
        assert restored.document.predictor == published.document.predictor
        vectors = [(60.0, "a"), (-3.0, "a"), (None, "?"), (0.0, "elsewhere")]
        for classifier in (published, restored):
            assert [classifier.predict(vector) for vector in vectors] == labels
