"""``conclave plan`` in three lines, as TOML to paste, and looking for what is wanted."""

from __future__ import annotations

import json
import re
import tomllib
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from app.planning.output.epsilon_sentence import delta_words, even_chance_after
from app.planning.trial import search_for_wanted as wanted
from app.settings.settings import load_settings
from tests.unit.cli.plan.test_command import CONFIGURATION, plan

if TYPE_CHECKING:
    from pathlib import Path

# So few learners do little; more of them give more labels.
FEW_LEARNERS = CONFIGURATION + "[answers]\nensemble = 60\nqueries = 20000\n"


@pytest.fixture(name="configuration")
def configuration_file(tmp_path: Path) -> Path:
    """A configuration whose data do not exist."""
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION)
    return path


def test_a_plan_is_three_lines(configuration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers at m, accuracy with its probability and rare labels, and what to change."""
    assert run(plan("--config", str(configuration))) == 0
    printed = capsys.readouterr()
    answers, accuracy, change = printed.out.splitlines()
    assert printed.err == f"next: conclave check --config {configuration}\n"
    assert answers.startswith("Answers: 1,000 of m = 1,000 queries get a label where nine learners")
    assert "with probability 95%" in accuracy
    assert re.search(r'fewer than \d+ rows \(.*%\) may be given to nobody: is "no" or', accuracy)
    assert change.startswith("Change: publish a classifier at once")
    assert "Epsilon 8 promises next to nothing in the worst case" in change
    assert "is right at most about 99.97% of the time" in change


def test_labels_that_will_vanish_are_named(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A public sample with labels says which are rare; one that has none so rare says that."""
    public = configuration.parent / "public.csv"
    for labels, told in (
        (["no"] * 2999 + ["yes"], "May be given to nobody, with fewer than 1"),
        (
            ["no", "yes"] * 500,
            "Every label of the public sample is frequent enough: on more than 1",
        ),
    ):
        rows = [f"{index / 3000},{label}" for index, label in enumerate(labels)]
        public.write_text("\n".join(["x,y", *rows]) + "\n")
        run(plan("--config", str(configuration), "--public", str(public)))
        accuracy = capsys.readouterr().out.splitlines()[1]
        assert told in accuracy
        assert accuracy.endswith(': "yes".') is ("nobody" in told)


def test_an_infeasible_plan_says_what_to_change(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has three lines too, and ends with 1."""
    assert run(plan("--config", str(configuration), "--rows", "50")) == 1
    *_, change = lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert change.startswith("Change: this release does not work: even if all k = ")
    assert "To change: have n = " in change


def test_the_recommended_settings_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sections take the place of the file's own, and load as what is recommended."""
    path = tmp_path / "conclave.toml"
    path.write_text(FEW_LEARNERS)
    run(plan("--config", str(path), "--populations", "1", "--json"))
    best = json.loads(capsys.readouterr().out)["recommendation"]
    run(plan("--config", str(path), "--populations", "1", "--toml"))
    pasted = capsys.readouterr().out
    assert tomllib.loads(pasted)["answers"]["ensemble"] == best["k"] != 60
    named = [f"[{name}]" for name in ("privacy", "answers") if f"[{name}]\n" in pasted]
    kept = re.split(r"^(?=\[)", FEW_LEARNERS, flags=re.MULTILINE)
    path.write_text("".join(each for each in kept if not each.startswith(tuple(named))) + pasted)
    settings = load_settings(path, {})
    assert settings.answers.ensemble == best["k"]
    assert settings.answers.queries == 20000
    assert settings.answers.mechanism == best["mechanism"]
    assert settings.privacy.epsilon == 8
    assert float(settings.privacy.shares.answers) == best["shares"]["answers"]


def test_the_cheapest_epsilon_is_found(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What 20,000 rows give at epsilon 8 they give at less, and the document has it."""
    want = ("--want-answers", "500", "--want-accuracy", "0.95", "--populations", "0")
    assert run(plan("--config", str(configuration), *want)) == 0
    asked, cheapest, otherwise = capsys.readouterr().out.splitlines()
    assert asked == "Wanted: 500 answers, at most 5.00% wrong beyond the best rule."
    (epsilon,) = re.findall(r"^Cheapest of those tried: epsilon (\S+) with 20,000 rows", cheapest)
    assert Fraction(epsilon) < 8
    assert "(--toml)" in cheapest
    assert "a classifier that is published at once gives any number of answers" in otherwise
    assert f"Epsilon {epsilon} " in otherwise


def test_answers_are_tried_out(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each epsilon has a mechanism, k, T and shares of its own, which can be pasted."""
    monkeypatch.setattr(wanted, "EPSILONS", (Fraction(4),))
    want = ("--want-answers", "40", "--populations", "1", "--toml")
    assert run(plan("--config", str(configuration), *want)) == 0
    sections = tomllib.loads(capsys.readouterr().out)
    assert sections["answers"]["queries"] == 40
    assert sections["answers"]["ensemble"] > 1
    assert sections["privacy"]["epsilon"] == 4


def test_what_cannot_be_had_ends_with_one(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No epsilon up to 10 bounds an error by one in a million on these rows; more rows might."""
    want = ("--want-accuracy", "0.9999999")
    assert run(plan("--config", str(configuration), *want)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("Cannot be had as far as was tried. What comes nearest: epsilon 10 ")
    assert run(plan("--config", str(configuration), *want, "--json")) == 1
    found = json.loads(capsys.readouterr().out)["wanted"]
    assert found["reached"] is False
    assert found["by_rows"]["n"] == 2_000_000


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--want-answers", "0"], "--want-answers: must be a whole number of at least 1"),
        (["--want-accuracy", "1"], "--want-accuracy: must lie between 0 and 1, both excluded"),
        (["--toml", "--json"], "--toml: does not go with --json"),
    ],
)
def test_bad_wishes_are_refused(
    options: list[str], line: str, configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the option, and nothing else is printed."""
    assert run(plan("--config", str(configuration), *options)) == 2
    assert capsys.readouterr() == ("", f"conclave: {line}\n")


@pytest.mark.parametrize(
    ("epsilon", "chance"),
    [
        (0.1, "at most about 52% of the time"),
        (1, "at most about 73% of the time"),
        (8.5, "at most about 99.98% of the time"),
        (20, "nearly always"),
    ],
)
def test_what_an_even_chance_becomes(epsilon: float, chance: str) -> None:
    """It is e^epsilon to one at most."""
    assert even_chance_after(epsilon) == chance


@pytest.mark.parametrize(
    ("delta", "rows", "told"),
    [
        (1e-6, 20_000, ""),
        (1e-6, None, ""),
        (
            1e-2,
            20_000,
            (
                " That delta is too large: one person in 100 could be published whole."
                " Set delta = 5e-07 or less."
            ),
        ),
    ],
)
def test_a_delta_that_gives_records_away_is_told(delta: float, rows: int | None, told: str) -> None:
    """Where delta times the number of units is 1 or more, the plan names a smaller one."""
    assert delta_words(delta, rows, "person") == told
