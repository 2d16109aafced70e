"""The lines of a statement: what they name is there, and what is outside is the guarantee's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.privacy.learner_properties import LEARNERS
from app.privacy.mechanisms import MECHANISMS
from app.release.views import statement
from app.release.views.statement import OUTSIDE, Line, statement_document

if TYPE_CHECKING:
    from app.privacy.learner_properties import PublishedLearner
    from app.privacy.mechanism_registration import MechanismRegistration

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("row", [*MECHANISMS.values(), *LEARNERS.values()])
def test_every_row_names_its_theorem_and_its_proof(
    row: MechanismRegistration | PublishedLearner,
) -> None:
    """A row of either table says what proves its claim; the file is there, and is a proof."""
    assert row.theorem
    assert "## Claim" in (ROOT / row.proof).read_text("utf-8")


def test_every_file_that_is_named_is_there() -> None:
    """The proofs of shares and of their sum are files of the sources."""
    source = Path(statement.__file__).read_text("utf-8")
    named = re.findall(r"app/[\w/]+\.md", source)
    assert len(named) == 10
    assert all((ROOT / each).exists() for each in named)


def test_what_is_outside_is_what_the_guarantee_leaves_out() -> None:
    """The statement lists each subject that the page on the guarantee does, in its order."""
    page = (ROOT / "docs" / "guarantee.md").read_text("utf-8")
    section = page.partition("## Outside the guarantee")[2].partition("\n## ")[0]
    assert re.findall(r"^\* \*\*([^*]+)\.\*\*", section, re.MULTILINE) == list(OUTSIDE)


def test_lines_are_put_at_their_places() -> None:
    """Dots are levels, and a place that ends in [] is an item of a list."""
    lines = [Line("a.b", "", 1, ""), Line("a.c[]", "", 2, ""), Line("a.c[]", "", None, "")]
    assert statement_document(lines) == {"a": {"b": 1, "c": [2, None]}}
