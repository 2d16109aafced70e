"""From settings to a plan: warnings over cells, and the account of each mechanism."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from app.planning.from_settings import plan_request, warn_of_cells
from app.planning.output.plan_sentences import summary
from app.planning.plan import plan_release
from app.privacy.noisy_vote.answering_registration import NOISY_BIT
from app.privacy.sparse_vector.answering_registration import SPARSE_VECTOR
from app.privacy.stability.answering_registration import PROFILE
from app.privacy.stability.certified.certified_registration import CERTIFIED
from app.settings.settings import load_settings
from tests.builders.schema import plan_requests

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings.settings import Settings

CELLS = """
[release]
name = "example"
[data]
source = "absent.csv"
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "x"
kind = "numeric"
bounds = [0, 1]
[hypotheses]
class = "cells"
cells = ["x >= 0.25", "", "x >= 0.5", "", "x >= 0.75", "", ""]
[privacy]
epsilon = 8
[answers]
"""


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("queries = 4", []),
        ("queries = 5", ["answers.queries = 5 is more than the 4 cells there are"]),
        ("queries = 4\ncutoff = 9", ["answers.cutoff has no effect: each cell is decided once"]),
        (
            'queries = 4\ncutoff = 9\non_cutoff = "classifier"',
            ["answers.cutoff and answers.on_cutoff have no effect"],
        ),
        ('mechanism = "noisy-vote"\nqueries = 4\ncutoff = 9', ["answers.cutoff has no effect"]),
    ],
)
def test_settings_that_do_nothing_over_cells_are_told(
    tmp_path: Path, answers: str, told: list[str]
) -> None:
    """More answers than cells and a cutoff are a line each; nothing is told without them."""
    path = tmp_path / "conclave.toml"
    path.write_text(CELLS + answers)
    lines: list[str] = []
    warn_of_cells(load_settings(path, {}), 5000, lines.append)
    assert len(lines) == len(told)
    assert all(line.startswith(start) for line, start in zip(lines, told, strict=True))


def test_a_class_without_cells_keeps_its_cutoff(tmp_path: Path) -> None:
    """Where T ends the ensemble nothing is told."""
    path = tmp_path / "conclave.toml"
    lines_kept = [line for line in CELLS.splitlines() if not line.startswith("cells = ")]
    path.write_text("\n".join(lines_kept).replace('"cells"', '"stumps"') + "\ncutoff = 9")
    lines: list[str] = []
    warn_of_cells(load_settings(path, {}), 5000, lines.append)
    assert not lines


CLASSIFIER = (
    '\nafter = "classifier"\n[privacy.shares]\nrelabel = 0.1\nanswers = 0.6\nclassifier = 0.3\n'
)


JOINT, SUM = 'accounting = "joint"', 'accounting = "sum"'


@pytest.mark.parametrize(
    ("configured", "accounting"),
    [
        *(("profile", each) for each in ("", JOINT, SUM)),
        *(("svt", each) for each in ("", SUM)),
        *(("certified", each) for each in ("", JOINT, SUM)),
    ],
)
def test_each_mechanism_is_forecast_by_the_account_that_its_release_would_have(
    tmp_path: Path, configured: str, accounting: str
) -> None:
    """As its own configuration says, whichever mechanism the plan is of."""
    stumps = "\n".join(line for line in CELLS.splitlines() if not line.startswith("cells = "))
    stumps = stumps.replace('"cells"', '"stumps"').replace("epsilon = 8", "epsilon = 1")

    def settings_by(calibration: str, mechanism: str) -> Settings:
        path = tmp_path / f"{calibration}.toml"
        privacy = f'[privacy]\ncalibration = "{calibration}"\n{accounting}'
        text = stumps.replace("[privacy]", privacy) + f'\nmechanism = "{mechanism}"' + CLASSIFIER
        path.write_text(text, encoding="utf-8")
        return load_settings(path, {})

    request = plan_request(settings_by(configured, "stability"), 30_000)
    assert request.budget is not None
    for row in (PROFILE, CERTIFIED, SPARSE_VECTOR, NOISY_BIT):
        if row is SPARSE_VECTOR and accounting == JOINT:
            own = plan_request(settings_by("profile", "stability"), 30_000)
            expected = replace(own.asked, account=None), Fraction(6, 10)
        else:
            own = plan_request(settings_by(row.calibration or "profile", row.mechanism), 30_000)
            assert own.budget is not None
            expected = own.asked, own.budget.answers_epsilon
        asked, epsilon = request.asked_of(row, request.budget.answers_epsilon)
        assert (replace(asked, account=None), epsilon) == (
            replace(expected[0], account=None),
            expected[1],
        )
        assert asked.draws_at(epsilon) == expected[0].draws_at(epsilon)


def test_the_text_of_a_plan_names_each_theorem_and_where_it_is_proved() -> None:
    """Those of every mechanism that could be configured, Theorem C's among them."""
    text = "\n".join(summary(plan_release(plan_requests.request())))
    for row in (PROFILE, CERTIFIED, SPARSE_VECTOR, NOISY_BIT):
        assert f'"{row.shown}" by {row.theorem}, in {row.proof}' in text


def test_a_growing_release_is_planned_by_the_first_rules_table() -> None:
    """Its batches buy their own cutoffs of one table, whose order is not that of its cutoff."""
    fixed = plan_requests.request()
    assert fixed.asked.is_by_cutoff
    assert not replace(fixed, is_growing=True).asked.is_by_cutoff
