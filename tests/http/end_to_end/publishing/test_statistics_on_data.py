"""A statistics table of the examples' real data, against the exact means."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

from app.cli import logs, run
from benchmarks.statistics_table import ADULT_TESTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.data

POINTS = 1000
SHARES = {"RELABEL": "0", "ANSWERS": "0", "CLASSIFIER": "0", "STATISTICS": "1"}


def stump(feature: int, condition: dict[str, object], classes: tuple[str, str]) -> dict[str, Any]:
    """Return a tree with one test, which says the second class where it holds."""
    branches = {"true": {"label": classes[1]}, "false": {"label": classes[0]}}
    return {"tree": {"feature": feature, **condition, **branches}}


def answered(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    config: Path,
    source: Path,
    asked: list[dict[str, Any]],
    tests: object,
) -> dict[str, Any]:
    """Open a table with the whole budget on rows of the test file, and ask it."""
    monkeypatch.setattr(logs, "configure_logs", lambda: None)
    environ = {
        "CONCLAVE_DATA__SOURCE": str(source / "train.csv"),
        "CONCLAVE_LEDGER__URL": f"sqlite:///{folder / 'conclave.db'}",
        "CONCLAVE_STATISTICS__CLASS": "stumps",
        "CONCLAVE_STATISTICS__TESTS": json.dumps(tests),
        **{f"CONCLAVE_PRIVACY__SHARES__{name}": share for name, share in SHARES.items()},
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    lines = (source / "test.csv").read_text(encoding="utf-8").splitlines()[: POINTS + 1]
    (folder / "public.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "asked.json").write_text(json.dumps({"hypotheses": asked}), encoding="utf-8")
    command = ["statistics", "--config", str(config), "--public", str(folder / "public.csv")]
    assert run([*command, str(folder / "asked.json")]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def columns(path: Path) -> dict[str, list[str]]:
    """Return the columns of a CSV by name."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def check(answer: dict[str, Any], exact: list[float]) -> None:
    """Compare: alpha/2 is what the table's own hypotheses keep."""
    assert answer["alpha"] < 1
    for value, truth in zip(answer["values"], exact, strict=True):
        assert abs(value - truth) <= answer["alpha"] / 2


def test_skin_is_answered_within_its_promise(
    repository: Path,
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three features, epsilon 1: cuts of the table against counts of the file."""
    classes = ("no", "yes")
    cuts = [(0, 127.5), (1, 63.75), (2, 191.25)]
    answer = answered(
        tmp_path,
        monkeypatch,
        capsys,
        config=repository / "examples" / "skin.toml",
        source=data_folder / "skin",
        asked=[stump(feature, {"at_least": cut}, classes) for feature, cut in cuts],
        tests={},
    )
    found = list(columns(data_folder / "skin" / "train.csv").values())
    exact = [
        2 * sum(float(value) >= cut for value in found[feature]) / len(found[feature]) - 1
        for feature, cut in cuts
    ]
    check(answer, exact)


def test_adult_is_answered_within_its_promise(
    repository: Path,
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Twelve tests of five features, epsilon 1: numbers and a category."""
    classes = ("<=50K", ">50K")
    found = columns(data_folder / "adult" / "train.csv")
    names = ["age", "workclass", "education_num", "marital_status"]
    married = "Married-civ-spouse"
    asked = [
        stump(names.index("age"), {"at_least": 41}, classes),
        stump(names.index("education_num"), {"at_least": 13}, classes),
        stump(names.index("marital_status"), {"category": married}, classes),
    ]
    answer = answered(
        tmp_path,
        monkeypatch,
        capsys,
        config=repository / "examples" / "adult.toml",
        source=data_folder / "adult",
        asked=asked,
        tests=dict(ADULT_TESTS),
    )
    shares = [
        sum(float(value) >= 41 for value in found["age"]),
        sum(float(value) >= 13 for value in found["education_num"]),
        found["marital_status"].count(married),
    ]
    check(answer, [2 * share / len(found["age"]) - 1 for share in shares])
