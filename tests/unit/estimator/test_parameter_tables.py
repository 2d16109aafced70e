"""An estimator that is configured by the file of a server: same privacy, schema and learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from app.errors import ConfigurationError
from app.estimator import PrivateQueryClassifier
from app.estimator.frame_columns import public_columns
from app.estimator.parameter_tables import tables_of
from app.settings.settings import Settings, load_settings
from tests.frames.data_frames import pd

EXAMPLES = Path(__file__).parents[3] / "examples"
COUNT = 900
CONFIGURATION = """\
[release]
name = "smokers"
[data]
source = "absent.csv"
label = "ill"
classes = ["yes", "no"]
missing = ["?", "99"]
{data}
[[data.features]]
name = "age"
kind = "numeric"
bounds = [18, 90]
thresholds = [30, 60]
[[data.features]]
name = "region"
kind = "categorical"
categories = ["north", "south"]
[hypotheses]
class = "trees"
depth = 1
[classifier]
bins = 4
{classifier}
[privacy]
epsilon = 3.3
[privacy.shares]
relabel = 0.1
answers = 0.4
classifier = 0.5
{shares}
[answers]
queries = 50
ensemble = 300
cutoff = 7
{answers}
[ledger]
url = "sqlite:///absent.db"
"""


def write(folder: Path, **tables: str) -> Path:
    """Write a configuration, with more lines in some of its tables."""
    empty = dict.fromkeys(("data", "classifier", "shares", "answers"), "")
    path = folder / "conclave.toml"
    path.write_text(CONFIGURATION.format(**{**empty, **tables}), encoding="utf-8")
    return path


def people() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return rows of the configuration's schema, some of them missing, and their labels."""
    generator = np.random.default_rng(4)
    ages = generator.integers(18, 90, COUNT)
    table = pd.DataFrame({"age": ages, "region": generator.choice(["north", "south"], COUNT)})
    return table, np.where(ages >= 60, "yes", "no")


def settings_of(estimator: PrivateQueryClassifier) -> dict[str, Any]:
    """Return what the parameters of an estimator come to as a whole configuration."""
    names = [feature["name"] for feature in (estimator.configuration or {})["data"]["features"]]
    columns = public_columns(
        np.empty((0, len(names)), dtype=object),
        bounds=estimator.bounds,
        categories=estimator.categories,
        names=names,
    )
    classes = list(map(str, estimator.classes))  # type: ignore[arg-type]  # a list of texts
    return Settings.read(tables_of(estimator.get_params(), columns, classes=classes)).model_dump()


@pytest.mark.parametrize("example", ["own-data.toml", "adult.toml", "skin.toml", "staircases.toml"])
def test_an_example_is_configured_as_its_server_is(example: str) -> None:
    """Read back from the parameters, every setting is the file's but for records and server."""
    path = EXAMPLES / example
    expected = load_settings(path, {}).model_dump()
    found = settings_of(PrivateQueryClassifier.from_config(path))
    for tables in (expected, found):
        for section in ("ledger", "server", "logs", "telemetry"):
            del tables[section]
        for key in ("source", "rows", "dead_features"):
            del tables["data"][key]
    assert found == expected


def test_it_opens_a_release_of_that_configuration(tmp_path: Path) -> None:
    """Budgets, features and public cuts are the file's, in whatever order columns come."""
    rows, labels = people()
    private = PrivateQueryClassifier.from_config(write(tmp_path))
    private.fit(rows[["region", "age"]], labels)
    settings = private._release._configuration.settings
    assert settings.release.name == "smokers"
    assert settings.data.label == "ill"
    assert [feature.name for feature in settings.data.features] == ["region", "age"]
    assert settings.data.grids() == {"age": (30.0, 60.0)}
    assert (settings.hypotheses.depth, settings.published.bins) == (1, 4)
    assert private.budget_["epsilon"] == 3.3
    assert private.unstable_label == "abstain"


def test_an_array_has_the_columns_of_the_file_in_their_order(tmp_path: Path) -> None:
    """Without names of its own, an array's columns are those of the schema."""
    rows, labels = people()
    private = PrivateQueryClassifier.from_config(write(tmp_path))
    private.fit(rows.to_numpy(dtype=object), labels)
    assert private._columns.names == ["age", "region"]


def test_tokens_of_missing_are_read_as_the_server_reads_them(tmp_path: Path) -> None:
    """A number, its text and a text that stand for a missing value are missing."""
    rows, labels = people()
    private = PrivateQueryClassifier.from_config(write(tmp_path)).fit(rows, labels)
    asked = pd.DataFrame({"age": [99, "99.0", "?", 40], "region": ["?", 99, None, "north"]})
    vectors = private._columns.vectors(np.asarray(private._given(asked)))
    assert vectors == [(None, "?"), (None, "99"), (None, None), (40.0, "north")]
    answers = private.answer(asked)
    assert [answer.query_id for answer in answers] == [1, 2, 3, 4]


def test_a_parameter_beats_the_file(tmp_path: Path) -> None:
    """It is given at once or set later, and a clone keeps it."""
    private = PrivateQueryClassifier.from_config(write(tmp_path), cutoff=9, on_cutoff="classifier")
    private.set_params(epsilon=2.0)
    found = settings_of(clone(private))
    assert (found["answers"]["cutoff"], found["answers"]["on_cutoff"]) == (9, "classifier")
    assert float(found["privacy"]["epsilon"]) == 2.0
    assert found["data"]["features"][0]["thresholds"] == (30.0, 60.0)


def test_the_environment_beats_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does of a server."""
    monkeypatch.setenv("CONCLAVE_ANSWERS__CUTOFF", "11")
    assert PrivateQueryClassifier.from_config(write(tmp_path)).cutoff == 11


@pytest.mark.parametrize(
    ("tables", "line"),
    [
        ({"answers": 'after = "student"'}, "answers.after: must be one of classifier, halt"),
        ({"answers": "cutof = 3"}, "answers.cutof: "),
        ({"data": "rows = 0"}, "data.rows: "),
    ],
    ids=["a student", "an unknown key", "no rows"],
)
def test_a_file_that_is_not_served_is_refused_by_its_setting(
    tmp_path: Path, tables: dict[str, str], line: str
) -> None:
    """Before there is an estimator."""
    with pytest.raises(ConfigurationError) as refused:
        PrivateQueryClassifier.from_config(write(tmp_path, **tables))
    assert str(refused.value).startswith(line)


def test_a_share_of_statistics_is_refused(tmp_path: Path) -> None:
    """There is no table of statistics here, and a share that nothing spends is a mistake."""
    path = write(tmp_path)
    text = path.read_text(encoding="utf-8").replace(
        "relabel = 0.1", "relabel = 0\nstatistics = 0.1"
    )
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"^privacy.shares.statistics: the estimator has"):
        PrivateQueryClassifier.from_config(path)


@pytest.mark.parametrize("kind", ['"boolean"', '"date"\nbounds = ["1900-01-01", "2026-12-31"]'])
def test_a_kind_that_no_column_has_is_refused(tmp_path: Path, kind: str) -> None:
    """Columns of X are numbers or categories; cells of another kind would be read as these."""
    path = write(tmp_path)
    more = f'[[data.features]]\nname = "more"\nkind = {kind}\n[hypotheses]'
    text = path.read_text(encoding="utf-8").replace("[hypotheses]", more)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"^data\.features\[2\]\.kind: the estimator"):
        PrivateQueryClassifier.from_config(path)


def test_persons_of_the_file_are_asked_for(tmp_path: Path) -> None:
    """Where persons are the unit there, a fit without them would promise less."""
    rows, labels = people()
    private = PrivateQueryClassifier.from_config(write(tmp_path, data='person = "who"'))
    with pytest.raises(ValueError, match=r"^groups: the configuration names persons"):
        private.fit(rows, labels)
    with pytest.raises(ValueError, match=r"^groups: row 100 names no person"):
        private.fit(rows, labels, groups=["who"] * 99 + ["?"] * (COUNT - 99))
    private.fit(rows, labels, groups=[f"person {row}" for row in range(COUNT)])
    assert private.budget_["unit"] == "person"


@pytest.mark.parametrize("names", [("True", "False"), ("true", "false"), ("1", "0")])
def test_labels_are_matched_to_classes_as_a_server_matches_them(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    """A boolean is the class that spells it; without one, it is 1 or 0."""
    path = write(tmp_path)
    text = path.read_text(encoding="utf-8").replace('"yes", "no"', '"{}", "{}"'.format(*names))
    path.write_text(text, encoding="utf-8")
    rows, labels = people()
    private = PrivateQueryClassifier.from_config(path).fit(rows, labels == "yes")
    answers = private.answer(pd.DataFrame({"age": [89, 19], "region": ["north", "north"]}))
    assert [answer.label for answer in answers] == list(names)


def test_a_boolean_is_no_class_that_spells_none(tmp_path: Path) -> None:
    """As a server refuses it."""
    rows, labels = people()
    with pytest.raises(ValueError, match="a label is none of classes"):
        PrivateQueryClassifier.from_config(write(tmp_path)).fit(rows, labels == "yes")


def test_a_label_of_unstable_answers_is_no_class(tmp_path: Path) -> None:
    """A release that abstains says so by a word that no class is, and a coin has none."""
    path = write(tmp_path)
    text = path.read_text(encoding="utf-8").replace('"yes", "no"', '"abstain", "no"')
    path.write_text(text, encoding="utf-8")
    assert PrivateQueryClassifier.from_config(path).unstable_label == "abstain_"
    coin = write(tmp_path, answers='unstable = "coin"')
    assert PrivateQueryClassifier.from_config(coin).unstable_label is None


def test_scores_of_the_file_are_answered(tmp_path: Path) -> None:
    """Output and precision are parameters too."""
    path = write(tmp_path, answers='output = "score"\nprecision = 4')
    private = PrivateQueryClassifier.from_config(path)
    assert (private.output, private.precision) == ("score", 4)
    assert hasattr(private, "predict_proba")
