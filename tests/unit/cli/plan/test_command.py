"""``conclave plan`` in its three forms: exact keys, exit codes and one-line refusals."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from app.cli import run
from app.privacy.stability import cell_table

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "privacy-vectors.json").read_text())
PROFILE = {"--epsilon": "4", "--delta": "1e-6", "--cutoff": "2"}
PAPER = {
    "--n": "1000",
    "--queries": "10",
    "--vc": "3",
    "--epsilon": "1",
    "--delta": "1e-6",
    "--alpha": ".1",
    "--beta": "0.05",
}
THEOREM_KEYS = [
    "setting",
    "rows",
    "constant",
    "rows_explicit",
    "queries",
    "T",
    "k",
    "error_bound",
    "error",
    "failure",
]
CONFIGURATION = """
[release]
name = "example"
[data]
source = "absent.csv"
rows = 20000
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "x"
kind = "numeric"
bounds = [0, 1]
[hypotheses]
class = "stumps"
[privacy]
epsilon = 8
[ledger]
url = "sqlite:///absent.db"
"""


def plan(*arguments: str) -> list[str]:
    """The arguments of one call; a configuration is tried out on two made-up rules only."""
    is_release = "--config" in arguments and "--populations" not in arguments
    return ["plan", *arguments, *(["--populations", "2"] if is_release else [])]


def flat(options: dict[str, str]) -> list[str]:
    """Options as arguments."""
    return [part for option in options.items() for part in option]


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """A configuration whose data do not exist."""
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION)
    return path


@pytest.mark.parametrize("case", VECTORS["nandi_bassily"])
def test_paper_prints_the_vectors(
    case: dict[str, dict[str, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The papers' parameters come first and by the vectors' keys, the theorems after them."""
    given = case["in"]
    names = {"n": "n", "queries": "m", "vc": "d"}
    names |= {name: name for name in ("epsilon", "delta", "alpha", "beta")}
    options = {f"--{option}": str(given[name]) for option, name in names.items()}
    assert run(plan("--paper", *flat(options), "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [*case["out"], "sample_complexity"]
    theorems = document.pop("sample_complexity")
    assert document == pytest.approx(case["out"], rel=1e-9)
    assert len(theorems) == 9


def test_paper_prints_what_each_theorem_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A theorem has its rows, as printed and explicitly, its queries, and what it promises."""
    assert run(plan("--paper", *flat(PAPER), "--gamma", "0.02", "--json")) == 0
    theorems = json.loads(capsys.readouterr().out)["sample_complexity"]
    by_name = {theorem.pop("theorem"): theorem for theorem in theorems}
    assert list(by_name["BTT 4.7"]) == THEOREM_KEYS
    assert by_name["BTT 4.7"]["setting"] == "agnostic"
    assert by_name["BTT 4.7"]["constant"] == "not stated"
    assert by_name["BTT 4.7"]["error_bound"] == "15 alpha + 7 gamma"
    assert by_name["BTT 4.7"]["error"] == pytest.approx(1.64)
    assert by_name["BTT 4.7"]["failure"] == pytest.approx(0.15)
    assert by_name["NB 7"]["queries"] == 424
    assert by_name["PAP 10"]["T"] is None


def test_what_a_theorem_needs_besides_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    """A class of 10^6 asks for 49,134 rows, and dual dimension 3 for fewer than the most."""
    options = ("--hypotheses", "1e6", "--dual-vc", "3", "--json")
    rows = []
    for given in (("--json",), options):
        assert run(plan("--paper", *flat(PAPER), *given)) == 0
        theorems = json.loads(capsys.readouterr().out)["sample_complexity"]
        rows.append({theorem["theorem"]: theorem["rows"] for theorem in theorems})
    default, chosen = rows
    assert chosen["LN"] == 49134
    assert chosen["PAP 10"] < default["PAP 10"]
    assert chosen["NB 11"] == default["NB 11"]


def test_the_theorems_table_marks_open_constants(capsys: pytest.CaptureFixture[str]) -> None:
    """People see a star where a theorem is up to a constant, and nothing past counting."""
    assert run(plan("--paper", *flat(PAPER))) == 0
    printed = capsys.readouterr().out
    assert "BTT 4.3 *" in printed
    assert "NB 7 " in printed
    assert "up to a constant" in printed
    vast = {**PAPER, "--alpha": "1e-100", "--vc": "1" * 18}
    assert run(plan("--paper", *flat(vast), "--json")) == 0
    theorems = json.loads(capsys.readouterr().out)["sample_complexity"]
    assert {theorem["rows"] for theorem in theorems} == {None}
    assert run(plan("--paper", *flat(vast))) == 0


def test_profile_prints_the_table_that_serves(capsys: pytest.CaptureFixture[str]) -> None:
    """Theorem A's table has its five keys: numbers as numbers, thresholds as strings."""
    assert run(plan("--profile", *flat(PROFILE), "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["alpha", "lnR", "word_bits", "threshold", "hit_probability"]
    assert document["word_bits"] == 64
    assert all(isinstance(threshold, str) for threshold in document["threshold"])
    assert [int(threshold) / 2**64 for threshold in document["threshold"]] == pytest.approx(
        document["hit_probability"]
    )


def test_a_table_of_decisions_is_printed_without_a_cutoff(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is the table of two decisions, and a cutoff beside it is refused."""
    given = ("--profile", "--epsilon", "0.9", "--delta", "1e-6", "--decisions", "2")
    assert run(plan(*given, "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    table = cell_table.calibrate(epsilon=Fraction(9, 10), delta=Fraction(1, 10**6))
    assert document["threshold"] == [str(each) for each in table.thresholds]
    assert run(plan(*given, "--cutoff", "5")) == 2
    problem = "does not go with --decisions, which needs none"
    assert capsys.readouterr().err == f"conclave: --cutoff: {problem}\n"


def test_configuration_is_planned_without_its_data(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A feasible release exits 0 with every parameter; its data need not exist."""
    assert run(plan("--config", str(configuration), "--json")) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["feasible"] is True
    assert (document["n"], document["T"]) == (20000, 5)
    assert document["chunk_rows"] == 20000 // document["k"]
    assert not list(configuration.parent.glob("absent*"))


def test_statistics_student_and_scores_are_planned(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statistics' share is a charge of its own, a student is none, and bins need a distance."""
    shares = '{"relabel": 0, "answers": 0.6, "classifier": 0, "statistics": 0.4}'
    monkeypatch.setenv("CONCLAVE_PRIVACY__SHARES", shares)
    monkeypatch.setenv("CONCLAVE_ANSWERS__AFTER", "student")
    monkeypatch.setenv("CONCLAVE_ANSWERS__OUTPUT", "score")
    assert run(plan("--config", str(configuration), "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["output"] == "score"
    assert document["charges"] == [
        {"mechanism": "answers", "epsilon": 4.8, "delta": pytest.approx(9e-7)},
        {"mechanism": "statistics", "epsilon": 3.2, "delta": pytest.approx(1e-7)},
    ]
    notes = " ".join(document["notes"])
    assert f"a bin worth releasing is at distance {document['distance']['needed']}:" in notes
    assert "it is charged nothing" in notes


def test_rows_replace_those_of_the_configuration(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An infeasible release exits 1 and says why and what to change."""
    assert run(plan("--config", str(configuration), "--rows", "50", "--json")) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["feasible"], document["n"]) == (False, 50)
    assert document["reasons"]
    assert document["advice"]


def test_paper_calibration_is_planned(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calibration paper is infeasible on ordinary data, with the rows that it would take."""
    monkeypatch.setenv("CONCLAVE_PRIVACY__CALIBRATION", "paper")
    monkeypatch.setenv("CONCLAVE_PRIVACY__EPSILON", "1")
    assert run(plan("--config", str(configuration), "--json")) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["rows_needed"] > 10**6
    assert document["paper"]["k"] == document["k"]


@pytest.mark.parametrize(
    "arguments", [["--profile", *flat(PROFILE)], ["--paper", *flat(PAPER)], ["--config"]]
)
def test_every_form_has_a_readable_table(
    arguments: list[str], configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --json a table of parameters goes to stdout; stderr has the next command alone."""
    if arguments == ["--config"]:
        arguments = ["--config", str(configuration), "--verbose"]
    assert run(plan(*arguments)) == 0
    printed = capsys.readouterr()
    assert "conclave plan" in printed.out
    assert [line.partition(" ")[0] for line in printed.err.splitlines()] in ([], ["next:"])


def test_an_infeasible_table_ends_with_reasons_and_advice(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People read why a release cannot work and what to change below its parameters."""
    assert run(plan("--config", str(configuration), "--rows", "50", "--verbose")) == 1
    printed = capsys.readouterr().out
    assert "reason: even if all k = " in printed
    assert "advice: have n = " in printed


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"--epsilon": "-1"}, "--epsilon: must be above 0"),
        ({"--epsilon": "0"}, "--epsilon: must be above 0"),
        ({"--epsilon": "nan"}, "--epsilon: must be a finite number, such as 0.1 or 1e-6"),
        ({"--epsilon": "inf"}, "--epsilon: must be a finite number, such as 0.1 or 1e-6"),
        ({"--epsilon": "1e999"}, "--epsilon: must be a finite number, such as 0.1 or 1e-6"),
        ({"--epsilon": "one"}, "--epsilon: must be a finite number, such as 0.1 or 1e-6"),
        ({"--epsilon": "1" * 101}, "--epsilon: must be a finite number, such as 0.1 or 1e-6"),
        ({"--epsilon": "1e-9"}, "--epsilon: is too small for calibration profile"),
        ({"--epsilon": "1001"}, "--epsilon: must be above 0 and at most 1000"),
        ({"--delta": "1"}, "--delta: must lie between 0 and 1, both excluded"),
        ({"--delta": "0"}, "--delta: must lie between 0 and 1, both excluded"),
        ({"--cutoff": "2.5"}, "--cutoff: must be a whole number of at least 1"),
        ({"--cutoff": "0"}, "--cutoff: must be a whole number of at least 1"),
        ({"--cutoff": "1" * 19}, "--cutoff: must be a whole number of at least 1"),
        ({"--cutoff": "\u0663"}, "--cutoff: must be a whole number of at least 1"),
    ],
)
def test_bad_numbers_are_refused_in_one_line(
    change: dict[str, str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number out of range names its option on stderr and exits 2."""
    assert run(plan("--profile", *flat({**PROFILE, **change}), "--json")) == 2
    assert capsys.readouterr() == ("", f"conclave: {line}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "plan: takes one of --config FILE, --paper and --profile"),
        (["--paper", "--profile"], "plan: takes one of --config FILE, --paper and --profile"),
        (["--profile", "--epsilon", "1"], "--delta: is required with --profile"),
        (["--profile", *flat(PROFILE), "--vc", "3"], "--vc: does not go with --profile"),
        (["--config", "x", "--rows", "1", "--beta", ".1"], "--beta: does not go with --config"),
        (["--config", "x", "--rows", "-1"], "--rows: must be a whole number of at least 1"),
        (
            ["--paper", *flat({**PAPER, "--delta": ".037"})],
            "--delta: must be above 0 and at most 0.036 in calibration paper",
        ),
        (
            ["--paper", *flat({**PAPER, "--alpha": "1"})],
            "--alpha: must lie between 0 and 1, both excluded",
        ),
        (
            ["--paper", *flat(PAPER), "--gamma", "1"],
            "--gamma: must be at least 0 and below 1",
        ),
        (
            ["--paper", *flat(PAPER), "--gamma", "-0.1"],
            "--gamma: must be at least 0 and below 1",
        ),
        (
            ["--paper", *flat(PAPER), "--dual-vc", "0"],
            "--dual-vc: must be a whole number of at least 1",
        ),
        (
            ["--paper", *flat(PAPER), "--hypotheses", "0.5"],
            "--hypotheses: must be at least 1, such as 5000 or 1e40",
        ),
        (
            ["--paper", *flat(PAPER), "--hypotheses", "many"],
            "--hypotheses: must be a finite number, such as 0.1 or 1e-6",
        ),
        (
            ["--profile", *flat(PROFILE), "--gamma", "0"],
            "--gamma: does not go with --profile",
        ),
    ],
)
def test_bad_usage_is_refused_in_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong combination of options says what goes together and exits 2."""
    assert run(plan(*arguments)) == 2
    assert capsys.readouterr() == ("", f"conclave: {line}\n")


@pytest.mark.parametrize(
    ("environment", "rows", "problem"),
    [
        ({"HYPOTHESES__CLASS": "trees", "HYPOTHESES__DEPTH": "16"}, "1000", "trees of depth 16"),
        (
            {
                "HYPOTHESES__CLASS": "trees",
                "HYPOTHESES__DEPTH": "6",
                "CLASSIFIER__DEPTH": "1",
                "LEARNER__RULE": "halving",
            },
            "20000",
            "the halving rule takes about",
        ),
        (
            {"CLASSIFIER__CLASS": "trees", "CLASSIFIER__DEPTH": "4", "CLASSIFIER__BINS": "64"},
            "1000000000",
            "counting 1000000000 rows",
        ),
    ],
)
def test_work_of_hours_is_refused_in_one_line(
    configuration: Path,
    environment: dict[str, str],
    rows: str,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line names the depth to lower; public numbers alone tell."""
    for name, value in environment.items():
        monkeypatch.setenv(f"CONCLAVE_{name}", value)
    assert run(plan("--config", str(configuration), "--rows", rows)) == 2
    section = "classifier" if "CLASSIFIER__CLASS" in environment else "hypotheses"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"conclave: {section}.depth: {problem}")


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("ACCURACY", "0.000001", "accuracy: 1e-06 is out of reach"),
        ("TESTS", json.dumps({"x": [cut / 200 for cut in range(1, 200)]}), "tests: 199 tests make"),
    ],
)
def test_a_statistics_table_that_cannot_be_drawn_is_refused_in_one_line(
    configuration: Path,
    setting: str,
    value: str,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a server would refuse to open is not planned."""
    shares = '{"relabel": 0, "answers": 0.6, "classifier": 0, "statistics": 0.4}'
    monkeypatch.setenv("CONCLAVE_PRIVACY__SHARES", shares)
    monkeypatch.setenv("CONCLAVE_ANSWERS__AFTER", "halt")
    monkeypatch.setenv(f"CONCLAVE_STATISTICS__{setting}", value)
    monkeypatch.setenv("CONCLAVE_STATISTICS__CLASS", "trees")
    monkeypatch.setenv("CONCLAVE_STATISTICS__DEPTH", "2")
    assert run(plan("--config", str(configuration))) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"conclave: statistics.{problem}")


def test_a_plan_tells_how_long_answers_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measured without a row; null where k is not known for want of n."""
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION)
    run(plan("--config", str(path), "--json"))
    told = json.loads(capsys.readouterr().out)["answer_time"]
    assert 0 < told["evaluation_seconds"] == told["seconds"] < told["seconds_max"] == 2
    assert told["together"] is True
    assert told["opens"] is True
    path.write_text(CONFIGURATION.replace("rows = 20000\n", ""))
    run(plan("--config", str(path), "--json"))
    assert json.loads(capsys.readouterr().out)["answer_time"] is None


def test_a_plan_tells_that_answers_would_take_too_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is planned all the same; such a release is refused when it opens."""
    path = tmp_path / "conclave.toml"
    path.write_text(f"{CONFIGURATION}[answers]\nreply_padding_milliseconds = 9000\n")
    assert run(plan("--config", str(path), "--json")) == 0
    told = json.loads(capsys.readouterr().out)["answer_time"]
    assert told["seconds"] == 9
    assert told["opens"] is False
