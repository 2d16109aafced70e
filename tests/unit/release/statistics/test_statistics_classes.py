"""Every class that a table covers, from its draw to a document and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.rows import PrivateRows
from app.errors import ConfigurationError, InvalidHypothesisError, InvariantError, TooLargeError
from app.release.statistics import released_table as module
from app.release.statistics.posted_hypotheses import parse_hypotheses
from app.release.statistics.released_table import (
    ReleasedStatistics,
    drawn_statistics,
    read_statistics,
    released_table,
)
from app.release.statistics.statistics_table import (
    ALPHA_MAX,
    check_statistics_draw,
    statistics_draw,
)
from app.release.terms.configuration import Configuration, configure
from app.settings.settings import load_settings
from tests.builders.release.small_release import CONFIGURATION, SmallRelease, seeded_noise
from tests.unit.release.statistics.test_statistics import ALONE

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WIDTH = """\
[[data.features]]
name = "width"
kind = "numeric"
bounds = [0, 10]
[hypotheses]
"""
# At this much epsilon a value is within a few rows of the exact one.
EXACT = {**ALONE, "privacy__epsilon": "1000", "hypotheses__bins": "5"}
YES, NO = {"label": "yes"}, {"label": "no"}


def configuration(folder: Path, changes: dict[str, str]) -> Configuration:
    """Return a configuration of two numbers and a category."""
    path = folder / "conclave.toml"
    path.write_text(CONFIGURATION.replace("[hypotheses]\n", WIDTH), encoding="utf-8")
    environ = {f"CONCLAVE_{name}".upper(): value for name, value in changes.items()}
    return configure(load_settings(path, environ))


def encoded(count: int, *, seed: int) -> NDArray[np.float64]:
    """Return margins, groups and widths, some of them missing."""
    generator = np.random.default_rng(seed)
    margins = generator.uniform(-50, 50, count)
    margins[::17] = np.nan
    groups = generator.integers(0, 4, count).astype(np.float64)
    return np.stack([margins, groups, generator.uniform(0, 10, count)], axis=1)


def released(given: Configuration, rows: PrivateRows) -> ReleasedStatistics:
    """Draw a table on rows, write it down and read it again."""
    points = encoded(300, seed=1)
    draw = statistics_draw(given, points, row_count=rows.count)
    drawn = drawn_statistics(given, draw, draw.draw(rows, seeded_noise(2)), points)
    return read_statistics(drawn.document, drawn.points, given.schema)


def at_least(feature: int, cut: float, true: object, false: object) -> dict[str, object]:
    """Return a node with a cut."""
    return {"feature": feature, "at_least": cut, "true": true, "false": false}


INSIDE = at_least(0, -25.0, at_least(0, 25.0, NO, YES), NO)
ASKED: dict[str, tuple[dict[str, object], int]] = {
    "thresholds": (at_least(0, 0.0, YES, NO), 0),
    "intervals": (INSIDE, 0),
    "rectangles": (at_least(2, 4.0, INSIDE, NO), 0),
    "stumps": ({"feature": 1, "category": "b", "true": NO, "false": YES}, 1),
    "trees": ({"feature": 1, "missing": True, "true": at_least(0, 0.0, NO, YES), "false": NO}, 2),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_class_is_answered_closely_where_noise_is_small(tmp_path: Path, kind: str) -> None:
    """Missing values, categories and both numbers: the mean is that of the rows, or nearly."""
    tree, depth = ASKED[kind]
    given = configuration(tmp_path, EXACT | {"statistics__class": kind, "statistics__depth": "2"})
    rows = PrivateRows(values=encoded(500, seed=3), labels=np.zeros(500, dtype=np.int64))
    table = released(given, rows)
    (value,) = table.answer(parse_hypotheses(given.schema, [{"tree": tree}])).values
    exact = 2 * float(_labelled(tree, rows.values).mean()) - 1
    assert abs(value - exact) <= min(0.03, table.document.alpha / 2)
    assert (table.document.kind, table.document.depth) == (kind, depth)
    assert table.document.pass_count > 0
    assert 0 < table.document.alpha < ALPHA_MAX


def _labelled(tree: object, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return who is labelled yes, by the words of the document."""
    assert isinstance(tree, dict)
    if "label" in tree:
        return np.full(len(values), tree["label"] == "yes")
    column = values[:, tree["feature"]]
    if "at_least" in tree:
        holds = column >= tree["at_least"]
    else:
        holds = column == (3 if "missing" in tree else ["a", "b"].index(str(tree["category"])))
    return np.where(holds, _labelled(tree["true"], values), _labelled(tree["false"], values))


def test_points_that_are_all_alike_leave_the_constants(tmp_path: Path) -> None:
    """There is nothing to tell apart, and whatever is asked is one of them."""
    given = configuration(tmp_path, EXACT)
    rows = PrivateRows(values=encoded(50, seed=3), labels=np.zeros(50, dtype=np.int64))
    points = np.repeat(encoded(2, seed=1)[1:], 20, axis=0)
    draw = statistics_draw(given, points, row_count=50)
    drawn = drawn_statistics(given, draw, draw.draw(rows, seeded_noise(2)), points)
    table = read_statistics(drawn.document, drawn.points, given.schema)
    asked = parse_hypotheses(given.schema, [{"tree": YES}, {"tree": NO}])
    assert table.answer(asked).values == [1.0, -1.0]


def test_a_search_of_the_table_is_not_asked_for_too_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What labels the points as the table does needs no search; of others one is searched for."""
    given = configuration(tmp_path, EXACT)
    rows = PrivateRows(values=encoded(50, seed=3), labels=np.zeros(50, dtype=np.int64))
    points = encoded(40, seed=1)
    draw = statistics_draw(given, points, row_count=50)
    drawn = drawn_statistics(given, draw, draw.draw(rows, seeded_noise(2)), points)
    table = read_statistics(drawn.document, drawn.points, given.schema)
    below = {"feature": 0, "at_least": -35.0, "true": YES, "false": NO}
    outside = {"feature": 0, "at_least": 47.0, "true": NO, "false": below}
    known, other = parse_hypotheses(given.schema, [{"tree": YES}, {"tree": outside}])
    monkeypatch.setattr(module, "SEARCH_WORDS_MAX", 1)
    assert table.answer([known] * 3).values == [1.0] * 3
    with pytest.raises(InvalidHypothesisError, match=r"^hypotheses\[1\] lies outside"):
        table.answer([known, other])
    with pytest.raises(TooLargeError, match=r"^2 of the hypotheses label .* at most 1 such are"):
        table.answer([known, other, other])


def test_an_accuracy_is_promised(tmp_path: Path) -> None:
    """Alpha is at most what was asked for, with as few updates as reach it."""
    changes = ALONE | {"privacy__epsilon": "10", "statistics__accuracy": "0.5"}
    given = configuration(tmp_path, changes)
    rows = PrivateRows(values=encoded(3000, seed=3), labels=np.zeros(3000, dtype=np.int64))
    assert released(given, rows).document.alpha <= 0.5
    with pytest.raises(ConfigurationError, match=r"statistics\.accuracy: 0\.5 is out of reach"):
        check_statistics_draw(given.settings, row_count=30)


def test_an_accuracy_that_the_points_put_out_of_reach_ends_no_server(tmp_path: Path) -> None:
    """After the last answer a table comes all the same, and says what it promises."""
    given = configuration(tmp_path, ALONE | {"statistics__accuracy": "0.0001"})
    draw = statistics_draw(given, encoded(30, seed=1), row_count=60)
    assert draw.calibration.update_count >= 1
    given = configuration(tmp_path, ALONE | {"statistics__updates": "3"})
    assert statistics_draw(given, encoded(30, seed=1), row_count=60).calibration.update_count == 3


def test_a_share_too_small_for_one_update_is_refused_when_the_release_opens(
    tmp_path: Path,
) -> None:
    """No server comes to its last answer and finds that it cannot draw."""
    given = configuration(tmp_path, EXACT | {"privacy__epsilon": "1e-10"})
    with pytest.raises(ConfigurationError, match=r"^privacy\.epsilon: over the updates"):
        check_statistics_draw(given.settings, row_count=50)


def test_listed_tests_too_many_for_a_table_are_refused_when_the_release_opens(
    tmp_path: Path,
) -> None:
    """One line names the key, before anything is charged."""
    cuts = ", ".join(str(number / 100) for number in range(1, 900))
    changes = ALONE | {"statistics__tests": f'{{"width": [{cuts}]}}', "statistics__depth": "3"}
    given = configuration(tmp_path, changes)
    with pytest.raises(ConfigurationError, match=r"^statistics\.tests: .* tests make up to"):
        check_statistics_draw(given.settings, row_count=1000)


def test_a_table_is_there_or_is_not(tmp_path: Path) -> None:
    """Reading one that was never released breaks an invariant of ours."""
    release = SmallRelease(tmp_path, ALONE)
    opened = release.open()
    with pytest.raises(InvariantError, match="a table is open"):
        released_table(opened.state, opened.ledger, opened.schema)


def test_the_class_is_the_same_for_any_rows(tmp_path: Path) -> None:
    """Tests, hypotheses, cells and noise come from public things: other rows change none."""
    given = configuration(tmp_path, ALONE)
    documents = []
    for seed in (7, 8):
        rows = PrivateRows(values=encoded(60, seed=seed), labels=np.zeros(60, dtype=np.int64))
        documents.append(released(given, rows).document)
    one, other = documents
    for name in ("tests", "hypotheses", "cell_count", "calibration", "point_count"):
        assert getattr(one, name) == getattr(other, name)
