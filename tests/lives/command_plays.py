"""Lives of the command line alone: help, configurations that are refused, keys, plans."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typer.main import get_command

from tests.lives.application import PrivateQueryClassifier, commands
from tests.lives.people import people, questions
from tests.lives.plays import write_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.lives.catalogue import Life
    from tests.lives.stage import Stage

# Key, value: each is one thing wrong, or at least odd.
BAD_SETTINGS: Final[tuple[tuple[str, str], ...]] = (
    ("RELEASE__NAME", ""),
    ("RELEASE__NAME", "a/b"),
    ("DATA__SOURCE", "rows.txt"),
    ("DATA__SOURCE", "mysql://a"),
    ("DATA__QUERY", "select 1"),
    ("DATA__ROWS", "0"),
    ("DATA__ROWS", "many"),
    ("DATA__ROWS", "5"),
    ("DATA__CLASSES", '["no"]'),
    ("DATA__CLASSES", '["no", "no"]'),
    ("DATA__CLASSES", "no json"),
    ("DATA__LABEL", "age"),
    ("DATA__MISSING", '["yes"]'),
    ("DATA__FEATURES", "[]"),
    ("DATA__FEATURES", '[{"name": "age", "kind": "numeric", "bounds": [1, 0]}]'),
    ("DATA__FEATURES", '[{"name": "age", "kind": "numeric", "bounds": [0, 1e999]}]'),
    ("DATA__FEATURES", '[{"name": "age", "kind": "ordinal"}]'),
    ("DATA__FEATURES", '[{"name": "a", "kind": "categorical", "categories": []}]'),
    ("DATA__UNKNOWN", "1"),
    ("UNKNOWN__KEY", "1"),
    ("HYPOTHESES__CLASS", "forests"),
    ("HYPOTHESES__CLASS", "none:None"),
    ("HYPOTHESES__CLASS", "halfspaces"),
    ("HYPOTHESES__DEPTH", "17"),
    ("HYPOTHESES__DEPTH", "0"),
    ("HYPOTHESES__BINS", "1"),
    ("HYPOTHESES__TESTS", '{"none": [1]}'),
    ("HYPOTHESES__TESTS", '{"age": ["x"]}'),
    ("HYPOTHESES__TESTS", '{"age": [1000]}'),
    ("HYPOTHESES__TESTS", '{"age": [], "income": [], "group": []}'),
    ("HYPOTHESES__GRID", "open"),
    ("HYPOTHESES__PREDICTORS", '["a:b"]'),
    ("HYPOTHESES__CELLS", '["age >= 25"]'),
    ("LEARNER__RULE", "best"),
    ("LEARNER__ESTIMATOR", "sklearn.none.None"),
    ("LEARNER__ESTIMATOR", "not a path"),
    ("LEARNER__PARAMS", '{"a": 1}'),
    ("LEARNER__JOBS", "0"),
    ("CLASSIFIER__LEARNER", "forest"),
    ("CLASSIFIER__DEPTH", "99"),
    ("STUDENT__RULE", "halving"),
    ("STATISTICS__CLASS", "halfspaces"),
    ("STATISTICS__UPDATES", "0"),
    ("PRIVACY__EPSILON", "0"),
    ("PRIVACY__EPSILON", "-1"),
    ("PRIVACY__EPSILON", "nan"),
    ("PRIVACY__EPSILON", "1001"),
    ("PRIVACY__DELTA", "1"),
    ("PRIVACY__DELTA", "0"),
    ("PRIVACY__CALIBRATION", "best"),
    ("PRIVACY__SAMPLING", "0"),
    ("PRIVACY__SAMPLING", "1.1"),
    ("PRIVACY__SHARES__RELABEL", "0.9"),
    ("PRIVACY__SHARES__RELABEL", "-0.1"),
    ("PRIVACY__SHARES__CLASSIFIER", "0"),
    ("PRIVACY__SHARES__UNKNOWN", "0"),
    ("PRIVACY__DELTA_SHARES__ANSWERS", "2"),
    ("PRIVACY__DELTA_SHARES__STATISTICS", "0.1"),
    ("PRIVACY__COMPOSED__EPSILON", "1"),
    ("PRIVACY__COMPOSED__DELTA", "0.1"),
    ("ANSWERS__MECHANISM", "magic"),
    ("ANSWERS__QUERIES", "0"),
    ("ANSWERS__CUTOFF", "0"),
    ("ANSWERS__CUTOFF", "1.5"),
    ("ANSWERS__ENSEMBLE", "some"),
    ("ANSWERS__ENSEMBLE", "0"),
    ("ANSWERS__UNSTABLE", "guess"),
    ("ANSWERS__AFTER", "nothing"),
    ("ANSWERS__OUTPUT", "scores"),
    ("ANSWERS__PRECISION", "4"),
    ("ANSWERS__ALPHA", "1"),
    ("ANSWERS__BETA", "0"),
    ("LEDGER__URL", "sqlite://"),
    ("LEDGER__URL", "oracle://x"),
    ("LEDGER__URL", "postgresql+psycopg://a:changeme@b/c"),
    ("SERVER__PORT", "65536"),
    ("SERVER__HOST", ""),
    ("SERVER__KEYS_FILE", "/nowhere/keys.toml"),
    ("SERVER__REQUEST_BYTES_MAX", "1"),
    ("LOGS__LEVEL", "debug"),
    ("LOGS__FORMAT", "xml"),
    ("TELEMETRY__TRACES_ENDPOINT", "nonsense"),
)
BAD_ARGUMENTS: Final = (
    "none",
    "--none",
    "",
    "--version",
    "plan",
    "plan --config",
    "plan --config none.toml",
    "plan --rows x",
    "plan --paper",
    "plan --profile",
    "plan --paper --profile",
    "serve none",
    "serve --config none.toml",
    "verify --config none.toml",
    "verify --expect-head",
    "export",
    "export --format csv",
    "simulate",
    "learn --config none.toml",
    "statistics",
    "query",
    "query --url nonsense none.csv",
    "audit",
    "ledger",
    "ledger none",
    "ledger copy",
    "ledger restore",
    "keys",
    "keys add",
    "keys add --role king --name a",
    "keys list --keys-file none.toml",
)


def help_of_all(life: Life, stage: Stage) -> None:
    """Ask every command for its help, and commands for what they cannot do."""
    del life
    for words in _names((), get_command(commands())):
        stage.command(*words, "--help")
    for line in BAD_ARGUMENTS:
        stage.command(*line.split())


def _names(words: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    yield words
    below: Mapping[str, object] = getattr(command, "commands", {})
    for word, each in below.items():
        yield from _names((*words, word), each)


def bad_configurations(life: Life, stage: Stage) -> None:
    """Plan with each setting that does not fit."""
    del life
    for key, value in BAD_SETTINGS:
        environ = {f"CONCLAVE_{key}": value}
        stage.keep("environment", f"{key}={value}".encode())
        options = ("--json", "--populations", "0")
        stage.command("plan", "--config", str(stage.config), *options, environ=environ)
    good = stage.config.read_text("utf-8")
    for text in (
        "",
        "[",
        "[release]\nname = 7\n",
        good + "\n[release]\n",
        good.replace("kind", "sort"),
    ):
        stage.config.write_text(text, encoding="utf-8")
        stage.configured("plan", "--json")
        stage.configured("verify")


def key_commands(life: Life, stage: Stage) -> None:
    """Make, limit, disable, rotate and remove keys."""
    del life
    file = ("--keys-file", str(stage.folder / "keys.toml"))
    one = ("--name", "one")
    for arguments in (
        ("add", "--role", "query", *one),
        ("add", "--role", "query", *one),
        ("add", "--role", "read", "--name", "two", "--limit", "3"),
        ("add", "--role", "admin", "--name", "three", "--limit", "3", "--unstable-limit", "2"),
        ("add", "--role", "query", "--name", "not well formed"),
        ("list",),
        ("limit", *one, "--limit", "7"),
        ("limit", *one, "--limit", "-7"),
        ("limit", *one),
        ("limit", "--name", "none", "--limit", "7"),
        ("disable", *one),
        ("disable", *one),
        ("enable", *one),
        ("rotate", *one),
        ("rotate", *one),
        ("list",),
        ("retire-old", *one),
        ("retire-old", *one),
        ("rotate", "--at-once", *one),
        ("remove", *one),
        ("remove", *one),
        ("list",),
    ):
        stage.command("keys", *arguments, *file)
        path = stage.folder / "keys.toml"
        stage.keep("file of keys", path.read_bytes() if path.exists() else b"")
    stage.configured("keys usage")


def plans(life: Life, stage: Stage) -> None:
    """Plan the papers' parameters, the profile, and releases of every kind."""
    del life
    numbers = "--n 100000 --queries 500 --vc 3 --epsilon 1 --delta 1e-6 --alpha .1 --beta .05"
    for more in (
        "",
        "--json",
        "--json --gamma .05",
        "--json --hypotheses 100",
        "--json --dual-vc 2",
    ):
        stage.command("plan", "--paper", *numbers.split(), *more.split())
    for cutoff in ("1", "5", "60"):
        options = ("--epsilon", "1", "--delta", "1e-6", "--cutoff", cutoff)
        stage.command("plan", "--profile", *options)
        stage.command("plan", "--profile", *options, "--json")
    for epsilon in ("0.5", "60"):
        for key, value in PLANNED:
            environ = {f"CONCLAVE_{key}": value, "CONCLAVE_PRIVACY__EPSILON": epsilon}
            options = ("--config", str(stage.config), "--rows", "30000", "--populations", "0")
            stage.command("plan", *options, environ=environ)
            stage.command("plan", *options, "--json", environ=environ)
    stage.configured("plan", "--rows", "3000", "--populations", "2", "--json")


PLANNED: Final = (
    ("DATA__ROWS", "30000"),
    ("PRIVACY__CALIBRATION", "svt"),
    ("PRIVACY__CALIBRATION", "paper"),
    ("ANSWERS__MECHANISM", "noisy-vote"),
    ("ANSWERS__OUTPUT", "score"),
    ("HYPOTHESES__GRID", "private"),
    ("CLASSIFIER__LEARNER", "linear"),
    ("CLASSIFIER__LEARNER", "auto"),
    ("PRIVACY__SAMPLING", "0.5"),
    ("ANSWERS__ENSEMBLE", "auto"),
)


def checks(life: Life, stage: Stage) -> None:
    """Check rows that fit, and rows that do not, for people and as JSON."""
    del life
    rows, points = stage.folder / "rows.csv", str(write_points(stage.folder))
    good = rows.read_text("utf-8")
    for name, text in {
        "good": good,
        "other names": good.replace("common", "Common").replace("rare", " rare"),
        "on a bound": re.sub(r"(?m)^[\d.]*,", "200,", good),
        "all missing": re.sub(r"(?m)^[\d.]*,", ",", good),
        "bad numbers": good.replace("\n1", "\nx1"),
        "bad labels": good.replace("yes", "Yes"),
        "another column": good.replace("income", "Income", 1),
    }.items():
        rows.write_text(text, encoding="utf-8")
        stage.keep("rows", name.encode())
        for options in ((), ("--json",), ("--json", "--public", points)):
            stage.configured("check", *options)


def simulations(life: Life, stage: Stage) -> None:
    """Run every mechanism on given votes."""
    del life
    votes = stage.folder / "votes.csv"
    for name, text in {
        "good": "60,0\n31,29\n0,60\n30,30\n",
        "uneven": "60,0\n3,2\n",
        "three": "1,2,3\n",
        "text": "a,b\n",
        "empty": "",
        "negative": "-1,61\n",
    }.items():
        votes.write_text(text, encoding="utf-8")
        stage.keep("votes", name.encode())
        for key, value in SIMULATED:
            environ = {f"CONCLAVE_{key}": value}
            given = ("--config", str(stage.config), "--votes", str(votes), "--trials", "20")
            stage.command("simulate", *given, "--json", environ=environ)
        stage.configured("simulate", "--votes", str(votes), "--trials", "20")


SIMULATED: Final = (
    ("DATA__ROWS", "600"),
    ("PRIVACY__CALIBRATION", "svt"),
    ("ANSWERS__MECHANISM", "noisy-vote"),
    ("ANSWERS__UNSTABLE", "coin"),
    ("ANSWERS__AFTER", "halt"),
)


def in_memory(life: Life, stage: Stage) -> None:
    """Fit the estimator in several ways, and ask it to the end."""
    rows = [row for row in people("step", ("no", "yes")) if row[0] is not None]
    values = np.array([[age, income] for age, income, _, _ in rows], dtype=float)
    labels = np.array([label for *_, label in rows])
    asked = np.array(
        [vector[:2] for vector in questions(len(life.name), 60) if vector[0] is not None]
    )
    for name, parameters in IN_MEMORY.items():
        given: dict[str, Any] = {
            "classes": ["no", "yes"],
            "bounds": (0, 100),
            **COMMON,
            **parameters,
        }
        stage.keep(f"fit {name}", _said(partial(_fitted, given, values, labels, asked)))


def _fitted(given: dict[str, Any], values: Any, labels: Any, asked: Any) -> str:
    estimator = PrivateQueryClassifier(**given).fit(values, labels)
    first, again = estimator.answer(asked[:20]), estimator.answer(asked[:5])
    lines = [str(each) for each in (*first, *again)]
    lines += [_said(lambda: str(estimator.answer(asked))).decode(), repr(estimator)]
    return "\n".join([*lines, json.dumps(estimator.budget_, sort_keys=True)])


def _said(work: Callable[[], str]) -> bytes:
    """Return what some work says, or the error that ends it."""
    try:
        return work().encode()
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is recorded
        return f"{type(error).__name__}: {error}".encode()


COMMON: Final = {"epsilon": 60, "ensemble": 60, "queries": 24, "cutoff": 6}
IN_MEMORY: Final[Mapping[str, dict[str, Any]]] = {
    "plain": {},
    "halt": {"after": "halt", "on_cutoff": "halt"},
    "svt": {"calibration": "svt"},
    "noisy vote": {"mechanism": "noisy-vote"},
    "linear": {"classifier_learner": "linear"},
    "label": {"unstable_label": "nobody knows"},
    "logistic": {"learner": "sklearn.linear_model.LogisticRegression"},
    "stumps": {"hypotheses": "stumps", "shares": {"answers": 0.7, "classifier": 0.3}},
    "refused": {"epsilon": -1},
    "refused learner": {"learner": "none"},
    "refused bounds": {"bounds": (1, 0)},
}
PLAYS: Final[Mapping[str, Callable[[Life, Stage], None]]] = {
    "help": help_of_all,
    "bad_configurations": bad_configurations,
    "key_commands": key_commands,
    "plans": plans,
    "checks": checks,
    "simulations": simulations,
    "in_memory": in_memory,
}
