"""What the file and the environment say is what the settings hold."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.errors import ConfigurationError
from app.ledger.database.sqlite import database_path
from app.settings.settings import demo_settings, load_settings, load_simulation_settings
from tests.builders.schema.configurations import RIGHT, line_of, spoil, write

ESTIMATOR = """
[learner]
estimator = "sklearn.tree.DecisionTreeClassifier"
params = { max_depth = 3, ccp_alpha = 0.5, class_weight = { a = 1.5 } }
"""
LISTS = """
[hypotheses.tests]
age = [30]
workclass = ["Private", "?"]
"""


def test_what_is_not_said_is_the_default(tmp_path: Path) -> None:
    """The defaults are those of the documentation."""
    settings = load_settings(write(tmp_path), {})
    privacy, answers = settings.privacy, settings.answers
    assert privacy.epsilon_of("relabel") == Fraction(1, 10)
    assert privacy.epsilon_of("answers") == Fraction(6, 10)
    assert privacy.epsilon_of("classifier") == Fraction(3, 10)
    assert privacy.epsilon_of("statistics") == 0
    assert privacy.delta_share("answers") == 1
    assert privacy.calibration == "profile"
    assert (settings.hypotheses.depth, settings.hypotheses.bins) == (2, 16)
    assert settings.learner.rule == "canonical"
    assert (answers.mechanism, answers.queries, answers.cutoff) == ("stability", 1000, 5)
    assert (answers.ensemble, answers.unstable) == ("auto", "abstain")
    assert (answers.after, answers.on_cutoff) == ("classifier", "halt")
    assert (answers.alpha, answers.beta) == (0.1, 0.05)
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8000)
    assert settings.server.keys_file is None
    assert settings.ledger.head_file is None
    assert not settings.server.port_is_set


def test_the_file_becomes_the_public_schema(tmp_path: Path) -> None:
    """Features, classes and missing tokens reach the readers of rows as written."""
    schema = load_settings(write(tmp_path), {}).data.public_schema()
    assert schema.canonical() == {
        "label": "income",
        "classes": ["<=50K", ">50K"],
        "features": [
            {
                "name": "age",
                "kind": "numeric",
                "bounds": ["17.0", "90.0"],
                "thresholds": ["25.0", "35.0", "50.0"],
                "threshold_shares": ["0.8", "0.58", "0.2"],
            },
            {
                "name": "workclass",
                "kind": "categorical",
                "categories": ["Private", "State-gov"],
                "category_shares": ["0.7", "0.04"],
            },
        ],
        "missing": ["?"],
    }


def test_the_environment_beats_the_file(tmp_path: Path) -> None:
    """Texts, numbers, lists and tables in the environment replace the file's."""
    settings = load_settings(
        write(tmp_path),
        {
            "CONCLAVE_RELEASE__NAME": "123",
            "CONCLAVE_DATA__ROWS": "null",
            "CONCLAVE_DATA__CLASSES": '["no", "yes"]',
            "CONCLAVE_PRIVACY__SHARES": '{"relabel": 0, "answers": 1, "classifier": 0}',
            "CONCLAVE_PRIVACY__SHARES__ANSWERS": "0.7",
            "CONCLAVE_PRIVACY__SHARES__CLASSIFIER": "0.3",
            "CONCLAVE_HYPOTHESES__CLASS": "stumps",
            "CONCLAVE_HYPOTHESES__TESTS__AGE": "[30, 40.5]",
            "CONCLAVE_ANSWERS__ENSEMBLE": "auto",
            "CONCLAVE_SERVER__PORT": "8001",
        },
    )
    assert settings.release.name == "123"
    assert settings.data.rows is None
    assert settings.data.classes == ("no", "yes")
    assert settings.privacy.epsilon_of("relabel") == 0
    assert settings.privacy.epsilon_of("answers") == Fraction(7, 10)
    assert settings.hypotheses.kind == "stumps"
    assert settings.hypotheses.tests == {"age": (30.0, 40.5)}
    assert settings.answers.ensemble == "auto"
    assert settings.server.port == 8001
    assert settings.server.port_is_set


@pytest.mark.parametrize("name", ["CONCLAVE_HOME", "CONCLAVE_OTHER__KEY", "PRIVACY__EPSILON"])
def test_other_names_are_no_configuration(tmp_path: Path, name: str) -> None:
    """A name without two underscores, of no section of ours or without the prefix is ignored."""
    path = write(tmp_path)
    assert load_settings(path, {name: "9"}) == load_settings(path, {})


def test_relative_paths_start_where_they_are_written(tmp_path: Path) -> None:
    """The file's paths start at its folder, the environment's at the working directory."""
    text = RIGHT + '[server]\nkeys_file = "keys.toml"\n[ledger]\nurl = "sqlite:///a.db?timeout=1"\n'
    text += 'head_file = "heads/a.head"\n'
    path, elsewhere = write(tmp_path, text), tmp_path / "elsewhere"
    written = load_settings(path, {}, working_directory=elsewhere)
    assert written.source == str(tmp_path / "train.csv")
    assert written.server.keys_file == tmp_path / "keys.toml"
    assert written.ledger_url == f"sqlite:///{tmp_path}/a.db?timeout=1"
    assert written.ledger.head_file == tmp_path / "heads" / "a.head"
    moved = load_settings(
        path,
        {
            "CONCLAVE_DATA__SOURCE": "rows.csv.gz",
            "CONCLAVE_SERVER__KEYS_FILE": "keys.toml",
            "CONCLAVE_LEDGER__URL": "sqlite:///b.db",
            "CONCLAVE_LEDGER__HEAD_FILE": "b.head",
        },
        working_directory=elsewhere,
    )
    assert moved.source == str(elsewhere / "rows.csv.gz")
    assert moved.server.keys_file == elsewhere / "keys.toml"
    assert moved.ledger_url == f"sqlite:///{elsewhere}/b.db"
    assert moved.ledger.head_file == elsewhere / "b.head"


def test_a_head_file_is_switched_off_by_false_alone(tmp_path: Path) -> None:
    """TOML's false and the environment's keep none; a file may be called false."""
    path = write(tmp_path, RIGHT + "[ledger]\nhead_file = false\n")
    assert load_settings(path, {}).ledger.head_file is False
    named = {"CONCLAVE_LEDGER__HEAD_FILE": "./false"}
    head_file = load_settings(path, named, working_directory=tmp_path).ledger.head_file
    assert head_file == tmp_path / "false"
    off = {"CONCLAVE_LEDGER__HEAD_FILE": "false"}
    assert load_settings(write(tmp_path), off).ledger.head_file is False


def test_absolute_paths_stay_as_they_are(tmp_path: Path) -> None:
    """An absolute path, plain or in an address, is not moved."""
    text = spoil('"train.csv"', '"/data/train.csv"') + '[ledger]\nurl = "sqlite:////data/a.db"\n'
    settings = load_settings(write(tmp_path, text), {})
    assert (settings.source, settings.ledger_url) == ("/data/train.csv", "sqlite:////data/a.db")


def test_databases_are_valid_sources(tmp_path: Path) -> None:
    """A database with a row-wise query is configuration, and a relative SQLite file is moved."""
    text = spoil('"train.csv"', '"sqlite:///people.db"\nquery = "select * from people"')
    settings = load_settings(write(tmp_path, text), {})
    assert settings.source == f"sqlite:///{tmp_path}/people.db"


def test_the_ledger_lies_beside_the_file(tmp_path: Path) -> None:
    """Without an address, the ledger is conclave.db in the folder of the configuration."""
    assert load_settings(write(tmp_path), {}).ledger_url == f"sqlite:///{tmp_path}/conclave.db"


@pytest.mark.parametrize("name", ["100%41", "what?", "a #b", "caf\u00e9+1"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    """No character of a folder's name is taken for a part of the ledger's address."""
    folder = tmp_path / name
    folder.mkdir()
    for text in (RIGHT, RIGHT + '[ledger]\nurl = "sqlite:///conclave.db"\n'):
        url = load_settings(write(folder, text), {}).ledger_url
        assert database_path(url) == folder / "conclave.db"
    url = demo_settings({}, folder=folder).ledger_url
    assert database_path(url) == folder / "conclave-demo.db"


def test_shares_are_exact_decimals(tmp_path: Path) -> None:
    """Ten times 0.1 is 1, and 0.6 of epsilon 4 is 2.4, without rounding."""
    text = RIGHT + "[privacy]\nepsilon = 4\n[privacy.shares]\nstatistics = 0.0\n"
    privacy = load_settings(write(tmp_path, text), {}).privacy
    assert privacy.epsilon_of("answers") == Fraction(24, 10)
    excess = RIGHT + "[privacy.shares]\nstatistics = 1e-50\n"
    assert line_of(write(tmp_path, excess)) == "conclave: privacy.shares: add up to more than 1"


def test_delta_is_shared_with_statistics(tmp_path: Path) -> None:
    """A tenth of delta goes to statistics where it has a share of epsilon."""
    shares = "[privacy.shares]\nanswers = 0.5\nstatistics = 0.1\n"
    privacy = load_settings(write(tmp_path, RIGHT + shares), {}).privacy
    assert privacy.delta_share("answers") == Fraction(9, 10)
    assert privacy.delta_share("statistics") == Fraction(1, 10)


def test_what_later_versions_serve_is_valid(tmp_path: Path) -> None:
    """Whether this version serves a mechanism is not for the settings to say."""
    text = spoil('class = "trees"', 'class = "my.module:Rectangles"')
    text += '[answers]\nmechanism = "noisy-vote"\nafter = "student"\non_cutoff = "student"\n'
    text += '[privacy]\ncalibration = "svt"\n'
    assert load_settings(write(tmp_path, text), {}).answers.after == "student"


def test_parameters_of_an_estimator_are_plain(tmp_path: Path) -> None:
    """Decimals among them become floats, at any depth."""
    learner = load_settings(write(tmp_path, RIGHT + ESTIMATOR), {}).learner
    assert learner.params == {"max_depth": 3, "ccp_alpha": 0.5, "class_weight": {"a": 1.5}}


def test_the_classifier_inherits_what_it_does_not_say(tmp_path: Path) -> None:
    """Each key absent from [classifier] is as in [hypotheses], lists and grids included."""
    published = load_settings(write(tmp_path, RIGHT + LISTS), {}).published
    assert (published.kind, published.depth, published.bins) == ("trees", 2, 16)
    assert published.tests == {"age": (30.0,), "workclass": ("Private", "?")}
    grids = load_settings(write(tmp_path), {}).published
    assert grids.tests == {"age": (25.0, 35.0, 50.0)}


def test_the_classifier_has_the_predictors_of_its_class(tmp_path: Path) -> None:
    """They are inherited, replaced, and left unused by another class."""
    finite = '"finite"\npredictors = ["a:b", "a.c:d"]'
    path = write(tmp_path, spoil('"trees"', finite))
    assert load_settings(path, {}).published.predictors == ("a:b", "a.c:d")
    own = {"CONCLAVE_CLASSIFIER__PREDICTORS": '["e:f"]'}
    assert load_settings(path, own).published.predictors == ("e:f",)
    trees = load_settings(path, {"CONCLAVE_CLASSIFIER__CLASS": "trees"})
    assert trees.published.kind == "trees"


def test_the_classifier_says_what_it_does_not_inherit(tmp_path: Path) -> None:
    """Keys in [classifier] win; its own bins replace the public grids of features."""
    text = RIGHT + LISTS + "[classifier]\ndepth = 3\nbins = 8\ntests = {}\n"
    published = load_settings(write(tmp_path, text), {}).published
    assert (published.depth, published.bins, published.tests) == (3, 8, {})


def test_settings_are_frozen(tmp_path: Path) -> None:
    """Nothing of the settings can be changed after they were read."""
    settings = load_settings(write(tmp_path), {})
    with pytest.raises(ValidationError):
        settings.privacy.epsilon = settings.privacy.delta  # type: ignore[misc] # what is refused


def test_addresses_are_not_shown(tmp_path: Path) -> None:
    """The text of the settings holds no password."""
    text = RIGHT + '[ledger]\nurl = "postgresql+psycopg://me:hunter2@host/ledger"\n'
    assert "hunter2" not in repr(load_settings(write(tmp_path, text), {}))


def test_the_demo_needs_no_file(tmp_path: Path) -> None:
    """Its ledger lies in the working directory and the environment beats it."""
    demo = demo_settings({"CONCLAVE_ANSWERS__CUTOFF": "7"}, folder=tmp_path)
    assert demo.is_embedded_demo
    assert demo.ledger_url == f"sqlite:///{tmp_path}/conclave-demo.db"
    assert (demo.answers.cutoff, demo.answers.queries, demo.answers.ensemble) == (7, 2000, 800)
    assert load_settings(None, {}).ledger_url == f"sqlite:///{Path.cwd()}/conclave-demo.db"


def test_the_demo_can_be_changed_after_the_environment(tmp_path: Path) -> None:
    """What the demo itself compares with is laid over all else."""
    demo = demo_settings(
        {"CONCLAVE_PRIVACY__SHARES__RELABEL": "0.2", "CONCLAVE_PRIVACY__SHARES__ANSWERS": "0.5"},
        folder=tmp_path,
        overrides={("privacy", "shares", "relabel"): 0, ("privacy", "shares", "answers"): 0},
    )
    assert demo.privacy.epsilon_of("relabel") == demo.privacy.epsilon_of("answers") == 0


def test_a_simulation_needs_classes_only(tmp_path: Path) -> None:
    """What a simulation does not read may be absent; what is there is still checked."""
    path = write(tmp_path, '[data]\nclasses = ["a", "b", "c"]\n[answers]\ncutoff = 2\n')
    settings = load_simulation_settings(path, {})
    assert (len(settings.data.classes), settings.answers.cutoff) == (3, 2)
    assert load_simulation_settings(write(tmp_path), {}) == load_settings(write(tmp_path), {})


def test_a_secret_comes_from_a_file_that_is_named(tmp_path: Path) -> None:
    """An address in a file beats the variable and the configuration; paths are as in both."""
    (tmp_path / "url").write_text("sqlite:///mounted.db\n", encoding="utf-8")
    (tmp_path / "source").write_text("mounted.csv", encoding="utf-8")
    environ = {
        "CONCLAVE_LEDGER__URL": "sqlite:///named.db",
        "CONCLAVE_LEDGER__URL_FILE": "url",
        "CONCLAVE_DATA__SOURCE_FILE": str(tmp_path / "source"),
    }
    settings = load_settings(write(tmp_path), environ, working_directory=tmp_path)
    assert database_path(settings.ledger_url) == tmp_path / "mounted.db"
    assert settings.source == str(tmp_path / "mounted.csv")


@pytest.mark.parametrize("held", [None, b"", b"two\nlines", b"\xff\xfe", b"x" * 70_000])
def test_a_secret_that_cannot_be_read_is_one_line(tmp_path: Path, held: bytes | None) -> None:
    """A file that is missing, empty, longer than a line or no text is named, never quoted."""
    file = tmp_path / "url"
    if held is not None:
        file.write_bytes(held)
    with pytest.raises(ConfigurationError) as refused:
        load_settings(write(tmp_path), {"CONCLAVE_LEDGER__URL_FILE": str(file)})
    line = str(refused.value)
    assert line.startswith(f"CONCLAVE_LEDGER__URL_FILE: '{file}' ")
    assert "lines" not in line


ALONE = {
    "CONCLAVE_PRIVACY__SHARES": '{"relabel": 0, "answers": 0, "classifier": 1}',
    "CONCLAVE_ANSWERS__AFTER": "classifier",
}


def without_hypotheses(folder: Path) -> Path:
    """Write the right configuration without its class."""
    path = write(folder)
    text = path.read_text(encoding="utf-8")
    start = text.index("[hypotheses]")
    end = text.find("\n[", start)
    path.write_text(text[:start] + (text[end + 1 :] if end > 0 else ""), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "classifier",
    [{"LEARNER": "linear"}, {"LEARNER": "kernel"}, {"LEARNER": "grid"}, {"CLASS": "stumps"}],
)
def test_hypotheses_may_be_absent_where_nothing_uses_them(
    tmp_path: Path, classifier: dict[str, str]
) -> None:
    """Neither an ensemble nor statistics, and a classifier that needs no class or names its own."""
    chosen = {f"CONCLAVE_CLASSIFIER__{key}": value for key, value in classifier.items()}
    settings = load_settings(without_hypotheses(tmp_path), {**ALONE, **chosen})
    written = load_settings(write(tmp_path), {**ALONE, **chosen})
    assert settings.hypotheses.kind == "trees"
    assert settings.published.kind == written.published.kind


@pytest.mark.parametrize(
    ("changes", "user"),
    [
        ({}, "an ensemble answers and the classifier is drawn from a class"),
        ({"CONCLAVE_CLASSIFIER__LEARNER": "linear"}, "an ensemble answers"),
        (ALONE, "the classifier is drawn from a class"),
        ({**ALONE, "CONCLAVE_CLASSIFIER__LEARNER": "auto"}, "the classifier is drawn from a class"),
        (
            {
                **ALONE,
                "CONCLAVE_CLASSIFIER__LEARNER": "linear",
                "CONCLAVE_PRIVACY__SHARES": '{"relabel": 0, "answers": 0, "classifier": 0.5, '
                '"statistics": 0.5}',
            },
            "there are statistics",
        ),
    ],
)
def test_absent_hypotheses_are_refused_where_something_uses_them(
    tmp_path: Path, changes: dict[str, str], user: str
) -> None:
    """The line names the section, and what uses it."""
    with pytest.raises(ConfigurationError) as refused:
        load_settings(without_hypotheses(tmp_path), changes)
    assert str(refused.value) == f"hypotheses: is required where {user}"
