"""The page of the estimator: its snippet runs, and its tables are the tests' own."""

from __future__ import annotations

import re
from typing import Any

from tests.docs.pages import ROOT, examples, text
from tests.unit.estimator.test_scikit_learn import EXPECTED_TO_FAIL

PAGE = ROOT / "docs" / "estimator.md"


def test_the_snippet_runs_and_predicts() -> None:
    """The notebook's cell opens a release and answers a thousand queries, most of them right."""
    (program,) = examples(PAGE, "python")
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 -- the page's own example is what is tested
    assert names["labels"].shape == (1000,)
    assert set(names["labels"]) <= {"no", "yes"}
    assert names["answer"].label == "yes"


def test_every_check_that_fails_is_on_the_page() -> None:
    """The table names the checks that are expected to fail, and no other."""
    named = set(re.findall(r"`(check_\w+)`", text(PAGE)))
    assert named == set(EXPECTED_TO_FAIL)
