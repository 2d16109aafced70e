"""The pages on HTTP list what the code has, no more and no less."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app import errors
from app.http import problems
from app.http.problems import INTERNAL_SLUG, KINDS
from app.http.routes import ROUTES

if TYPE_CHECKING:
    from pathlib import Path

# Bases that are never raised themselves.
UNUSED = {"bad-request"}


def first_cells(page: str) -> list[list[str]]:
    """Return the cells of every row of every table, without their code marks."""
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in row] for row in rows]


def test_every_problem_is_in_the_catalogue_with_its_status(repository: Path) -> None:
    """Each slug has a row that gives the status of the one table."""
    page = (repository / "docs/errors.md").read_text("utf-8")
    documented = {row[0]: int(row[1]) for row in first_cells(page) if row[1].isdecimal()}
    raised = {getattr(kind, "slug", INTERNAL_SLUG): int(row.status) for kind, row in KINDS.items()}
    assert documented == {slug: raised[slug] for slug in raised.keys() - UNUSED}


def test_every_error_class_has_a_row_of_the_table_for_its_slug() -> None:
    """An error that a client can see is never mapped by accident of its base alone."""
    kinds = [*vars(errors).values(), *vars(problems).values()]
    slugs = {kind.slug for kind in kinds if isinstance(kind, type) and hasattr(kind, "slug")}
    assert slugs == {kind.slug for kind in KINDS if hasattr(kind, "slug")}


def test_every_route_is_on_the_page_with_its_role(repository: Path) -> None:
    """Each route has a row with the role that it needs."""
    page = (repository / "docs/http.md").read_text("utf-8")
    documented = {
        re.sub(r"\?.*", "", row[0]): row[1]
        for row in first_cells(page)
        if re.match(r"(GET|POST) /.", row[0])
    }
    assert documented == {
        f"{entry.method} {entry.path}": str(entry.role or "none") for entry in ROUTES
    }
