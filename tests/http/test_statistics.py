"""``/statistics``: what is taken, what is given, and what is refused without a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.answering.service import NO_STATISTICS, STATISTICS_NOT_OPEN
from app.http.query.statistics_route import SHAPE
from app.release.statistics.posted_hypotheses import TREE_ONLY
from tests.http.doubles import JSON, Http, assert_problem, problem

if TYPE_CHECKING:
    import httpx

LEAVES = {"true": {"label": ">50K"}, "false": {"label": "<=50K"}}
STUMP = {"tree": {"feature": 0, "at_least": 40, **LEAVES}}
PRIVATE = {"tree": {"feature": 1, "category": "Private", **LEAVES}}
DOCUMENT = {
    "format": "conclave-classifier",
    "version": 1,
    "release": "adult-income",
    "label": "income",
    "classes": ["<=50K", ">50K"],
    "missing": ["?"],
    "features": [{"name": "age", "kind": "numeric"}, {"name": "workclass", "kind": "categorical"}],
    **PRIVATE,
}
TABLE = b'{"format":"conclave-statistics"}'


def post(http: Http, body: object) -> httpx.Response:
    """Post a body as JSON."""
    return http.request("POST", "/statistics", headers=JSON, content=json.dumps(body).encode())


def test_gives_a_value_a_hypothesis() -> None:
    """Documents as exported and trees alone, as often as one likes; the table itself too."""
    with Http() as http:
        http.service.table = TABLE
        for _ in range(2):
            reply = post(http, {"hypotheses": [STUMP, PRIVATE, DOCUMENT]})
            assert reply.status_code == 200
            assert reply.json() == {
                "values": [0.5] * 3,
                "fractions": [0.75] * 3,
                "alpha": 0.1,
                "beta": 0.05,
            }
        assert http.get("/statistics/table").content == TABLE
        assert post(http, {"hypotheses": []}).json()["values"] == []
        assert http.get("/budget").json()["queries"]["answered"] == 0


@pytest.mark.parametrize(("share", "status"), [(0, 404), (1, 409)])
def test_without_a_table_it_says_why(share: int, status: int) -> None:
    """404 where statistics have no share, 409 until the table is open."""
    slug, title, detail = (
        ("no-statistics", "No statistics", NO_STATISTICS)
        if share == 0
        else ("statistics-not-open", "Statistics not open", STATISTICS_NOT_OPEN)
    )
    with Http() as http:
        http.service.statistics_share = share
        bodies: tuple[dict[str, object], ...] = ({"hypotheses": [STUMP]}, {"hypotheses": [7]}, {})
        replies = [post(http, body) for body in bodies]
        for reply in (*replies, http.get("/statistics/table")):
            assert_problem(reply, problem(slug, title, status, detail))


@pytest.mark.parametrize(
    "body",
    [[], {}, {"hypotheses": STUMP}, {"hypotheses": [STUMP], "more": 1}, 7],
)
def test_another_body_is_malformed(body: object) -> None:
    """One object with one member, a list."""
    with Http() as http:
        http.service.table = TABLE
        assert_problem(post(http, body), problem("malformed-body", "Malformed body", 400, SHAPE))


@pytest.mark.parametrize("body", [b"", b"{", b'{"hypotheses": [' * 5000, b"\xff", b"[1e999]"])
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    """Whatever bytes come."""
    with Http() as http:
        http.service.table = TABLE
        reply = http.request("POST", "/statistics", headers=JSON, content=body)
        assert_problem(reply, problem("malformed-body", "Malformed body", 400, SHAPE))


def node(**members: object) -> dict[str, object]:
    """Return a stump with other members."""
    return {"tree": {"feature": 0, "at_least": 40, **LEAVES, **members}}


MISFITS: dict[str, tuple[object, str]] = {
    "a number": (7, TREE_ONLY),
    "no tree": ({"halfspace": {}}, TREE_ONLY),
    "a leaf with a branch": ({"tree": {"label": ">50K", "true": {"label": ">50K"}}}, TREE_ONLY),
    "an empty node": ({"tree": {}}, TREE_ONLY),
    "an unknown member": (node(below=3), TREE_ONLY),
    "one branch": ({"tree": {"feature": 0, "at_least": 1, "true": {"label": ">50K"}}}, TREE_ONLY),
    "a label beside a test": (node(label=">50K"), TREE_ONLY),
    "a string for a cut": (node(at_least="40"), TREE_ONLY),
    "an unknown label": (
        {"tree": {"label": "rich"}},
        "has a label that is not one of the classes",
    ),
    "an unknown feature": (node(feature=2), "asks feature 2, and there are 2 from 0"),
    "a negative feature": (node(feature=-1), "asks feature -1, and there are 2 from 0"),
    "two tests": (
        node(category="Private"),
        "has a node without exactly one of at_least, category, other and missing",
    ),
    "a category of a number": (
        {"tree": {"feature": 0, "category": "Private", **LEAVES}},
        "needs at_least for age",
    ),
    "a cut of a category": (node(feature=1), "has at_least for workclass, which has categories"),
    "an unknown category": (
        {"tree": {"feature": 1, "category": "Army", **LEAVES}},
        "names a category that workclass does not have",
    ),
    "other classes": (
        {**STUMP, "classes": ["no", "yes"]},
        "is of other classes than this release's; GET /schema lists them",
    ),
    "other features": (
        {**STUMP, "features": [{"name": "age"}]},
        "is of other features than this release's; GET /schema lists them",
    ),
}


@pytest.mark.parametrize(("hypothesis", "detail"), MISFITS.values(), ids=MISFITS)
def test_a_hypothesis_that_does_not_fit_is_named(hypothesis: object, detail: str) -> None:
    """By its number, from 0; the ones before it are not answered either."""
    with Http() as http:
        http.service.table = TABLE
        reply = post(http, {"hypotheses": [STUMP, hypothesis]})
    expected = problem("invalid-hypothesis", "Invalid hypothesis", 422, f"hypotheses[1] {detail}")
    assert_problem(reply, expected)


def test_too_many_hypotheses_are_refused() -> None:
    """A thousand are answered at once."""
    with Http() as http:
        http.service.table = TABLE
        assert post(http, {"hypotheses": [STUMP] * 1000}).status_code == 200
        detail = "at most 1000 hypotheses are answered at once"
        reply = post(http, {"hypotheses": [STUMP] * 1001})
    assert_problem(reply, problem("too-large", "Too large", 413, detail))
