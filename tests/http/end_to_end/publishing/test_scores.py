"""Scores served for real, in both calibrations, where the score of every query is known.

In each quarter of [0, 100) a share of the people has the second label: 1/8, 5/8, 3/8
and 7/8.  The best tree of depth 2 has the quarters for its leaves, so a learner's
score is the share among the hundred or so rows of its own chunk there: its
expectation is that share, and its standard deviation at most .05.  More than two
thirds of the learners are then within r = 1/16 of it, which is a quarter of a bin of
precision 4, as Theorem 5.14 asks (``app/privacy/soft_labels/proof.md``).

At precision 4 every share is in the middle of a bin.  At precision 8 it is an edge
of the plain histogram, and in the middle of a bin of the shifted one, which costs a
unit.  Of 1,200 learners 99 % are in the middle bin, at distance 587; of those at an edge
of the outer quarters 94 % are in the shifted bin, at distance 527, and the plain bins
have half each, at a distance whose deviation is 12.  With 1.6 of epsilon and delta 1e-16
the first two are a hit with probability 2e-8 and 2e-7, and the third is released with
1e-6: a run of this file fails by chance once in 100,000 times.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from app.settings.settings import load_settings
from tests.builders.server.serving import NDJSON, Served

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings.settings import Settings

SHARES = (0.125, 0.625, 0.375, 0.875)
# In the rows of the outer quarters a little more, or less: as many learners' scores are then
# below the edge as are not, though a binomial leans and a score on the edge lies above it.
ROW_SHARES = (0.1258, 0.625, 0.375, 0.873)
QUARTER = 25.0
CHUNK_ROWS, ENSEMBLE_SIZE = 400, 1200
RADIUS = 1 / 16
PRECISION, DOUBTFUL_PRECISION = 4, 8
CUTOFF = 4
# Numbers of places in the outer quarters.
DOUBTFUL = (0, 3, 4, 7)
CONFIGURATION = """\
[release]
name = "shares"
[data]
source = "rows.npz"
label = "answer"
classes = ["no", "yes"]
[[data.features]]
name = "place"
kind = "numeric"
bounds = [0, 100]
thresholds = [25, 50, 75]
[hypotheses]
class = "trees"
depth = 2
[privacy]
epsilon = 2
delta = 1e-16
[privacy.shares]
relabel = 0.0
answers = 0.8
classifier = 0.2
[answers]
output = "score"
precision = 4
queries = 100
cutoff = 4
ensemble = 1200
on_cutoff = "classifier"
[server]
port = 0
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of rows, of which each quarter has its share of the second label exactly."""
    generator = np.random.default_rng(21)
    of_quarter = CHUNK_ROWS * ENSEMBLE_SIZE // len(SHARES)
    places = generator.uniform(0, QUARTER, (len(SHARES), of_quarter))
    second = np.arange(of_quarter) < (np.array(ROW_SHARES) * of_quarter)[:, None]
    places, second = (places + QUARTER * np.arange(len(SHARES))[:, None]).ravel(), second.ravel()
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    labels = np.where(second, "yes", "no")
    np.savez(path, place=places, answer=labels)
    return path


@pytest.fixture(params=["profile", "svt"])
def settings(request: pytest.FixtureRequest, rows: Path, tmp_path: Path) -> Settings:
    """Return a configuration of each calibration that serves scores."""
    config = tmp_path / "conclave.toml"
    config.write_text(CONFIGURATION, encoding="utf-8")
    environ = {
        "CONCLAVE_DATA__SOURCE": str(rows),
        "CONCLAVE_PRIVACY__CALIBRATION": request.param,
    }
    return load_settings(config, environ)


def ask(served: Served, *queries: dict[str, Any]) -> list[dict[str, Any]]:
    """Post queries as one stream and return the replies."""
    body = "".join(json.dumps(query) + "\n" for query in queries)
    response = served.run(served._client.post("/query/stream", content=body, headers=NDJSON))
    return [json.loads(line) for line in response.text.splitlines()]


def place_of(number: int) -> float:
    """Return the ``number``-th place, the quarters in turn, away from their ends."""
    return QUARTER * (number % 4) + 1 + number * 0.618034 % 23


def test_scores_are_as_near_as_the_theorem_says(settings: Settings) -> None:
    """Forty queries in the middle of a bin and three on an edge: half a bin and r, all of them."""
    with Served(settings) as served:
        plain = ask(served, *({"features": [place_of(number)]} for number in range(40)))
        edges = ask(
            served,
            *(
                {"features": [place_of(number)], "precision": DOUBTFUL_PRECISION}
                for number in DOUBTFUL[:-1]
            ),
        )
        budget = served.budget()
    known = [*zip(range(40), plain, strict=True), *zip(DOUBTFUL, edges, strict=False)]
    for place, (number, reply) in enumerate(known):
        bins = PRECISION if place < 40 else DOUBTFUL_PRECISION
        share = SHARES[number % 4]
        assert reply["stable"], reply
        assert reply["precision"] == bins
        assert abs(reply["score"] - share) <= 1 / (2 * bins) + RADIUS
        assert reply["bin"]["lower"] <= share < reply["bin"]["upper"]
        assert reply["label"] == ("yes" if share > 0.5 else "no")
    assert budget["queries"]["answered"] == len(plain) + len(edges)
    assert budget["unstable"] == {"count": CUTOFF - 1, "cutoff": CUTOFF, "left": 1}


def test_the_last_unit_ends_the_ensemble(settings: Settings) -> None:
    """Unit T is an unstable answer without a score; the classifier's answers have none either."""
    with Served(settings) as served:
        doubtful = ask(
            served,
            *(
                {"features": [place_of(number)], "precision": DOUBTFUL_PRECISION}
                for number in DOUBTFUL
            ),
        )
        after = served.answer([place_of(0)])
        again = ask(served, {"features": [place_of(0)], "precision": DOUBTFUL_PRECISION})
        budget = served.budget()
    assert [reply["stable"] for reply in doubtful] == [True] * (CUTOFF - 1) + [False]
    last = doubtful[-1]
    assert (last["score"], last["bin"], last["label"]) == (None, None, None)
    assert last["precision"] == DOUBTFUL_PRECISION
    assert budget["unstable"]["left"] == 0
    for reply in (after, *again):
        assert (reply["phase"], reply["query_id"]) == ("classifier", None)
        assert (reply["score"], reply["bin"], reply["precision"]) == (None, None, None)
        assert reply["label"] == "no"
    check_ledger(settings)


def test_a_precision_is_a_question_of_its_own(settings: Settings) -> None:
    """The same vector in other bins is charged; the default is the same however it is said."""
    with Served(settings) as served:
        first = served.answer([60.0], key="a")
        named, other = ask(
            served,
            {"features": [60.0], "precision": PRECISION},
            {"features": [60.0], "precision": 2},
        )
        conflict = ask(served, {"features": [60.0], "precision": 2, "idempotency_key": "a"})[0]
        assert served.budget()["queries"]["answered"] == 2
    assert named == {**first, "replayed": True}
    assert (other["query_id"], other["replayed"]) == (2, False)
    assert other["bin"] == {"lower": 0.0, "upper": 0.5}
    assert conflict["type"].endswith("idempotency-conflict")


def test_a_restart_knows_units_scores_and_learners(settings: Settings) -> None:
    """A second process goes on from the same counters and repeats what was answered."""
    edge = {"features": [90.0], "precision": DOUBTFUL_PRECISION}
    with Served(settings) as served:
        before = ask(served, edge, {"features": [10.0]})
        budget = served.budget()
    with Served(settings) as served:
        again = ask(served, edge, {"features": [10.0]}, {"features": [11.0]})
        resumed = served.budget()
    assert again[:2] == [{**reply, "replayed": True} for reply in before]
    assert (again[2]["query_id"], again[2]["score"]) == (3, SHARES[0])
    assert budget["unstable"] == resumed["unstable"]
    assert resumed["unstable"]["count"] == 1
    check_ledger(settings)


def check_ledger(settings: Settings) -> None:
    """Verify the ledger as an operator does."""
    ledger = open_ledger(settings.ledger_url, create=False)
    verify(ledger)
    ledger.close()
