"""A private grid: labels of the sample's own dichotomies, refused by public numbers."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from app.data.rows import PrivateRows
from app.errors import ConfigurationError
from app.privacy.exponential.relabel import DichotomyParameters
from app.release import drawing
from app.release.progress import no_progress
from app.release.terms.draw_parameters import (
    dichotomy_bound,
    ensemble_parameters,
    private_dichotomies,
)
from tests.builders.release.opened_release import NoNoise, changed, pieces
from tests.builders.release.small_release import SmallRelease, private_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIVATE = {"hypotheses__grid": "private"}


@pytest.fixture
def private_release(small_release: SmallRelease) -> SmallRelease:
    """The small release, relabelled by dichotomies of its own rows."""
    return changed(small_release, **PRIVATE)


def test_a_private_grid_opens_and_continues(private_release: SmallRelease) -> None:
    """The hypothesis is persisted like any other, and a later start draws nothing."""
    first = private_release.open()
    hypothesis = msgspec.json.decode(pieces(private_release)["hypothesis"])
    assert set(hypothesis) == {"index", "description"}
    again = private_release.open(noise=NoNoise())
    values = private_rows().values
    assert (
        again.ensemble.vote_counts(values).tolist() == first.ensemble.vote_counts(values).tolist()
    )


def test_the_draw_gets_its_part_by_lemma_l(private_release: SmallRelease) -> None:
    """A share of 2 leaves a parameter of 2 ln(e - 1), and the whole costs 14."""
    parameters = ensemble_parameters(
        private_release.configuration(), row_count=60, progress=no_progress
    )
    assert parameters is not None
    relabel = parameters.relabel
    assert isinstance(relabel, DichotomyParameters)
    assert [relabel.epsilon, relabel.composed_epsilon] == [2, 14]
    assert relabel.mechanism_epsilon == pytest.approx(2 * np.log(np.e - 1), rel=1e-8)
    assert relabel.dichotomy_count_max == dichotomy_bound(private_release.settings(), 60)


def test_only_the_sample_has_dichotomies(
    private_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With sampling the labellings are of the sampled rows alone."""
    seen = []

    def watched(settings: object, values: NDArray[np.float64]) -> object:
        seen.append(len(values))
        return private_dichotomies(settings, values)  # type: ignore[arg-type]  # as it is given

    monkeypatch.setattr(drawing, "private_dichotomies", watched)
    changed(private_release, privacy__sampling="0.5").open()
    assert seen == [30]


def test_there_is_one_hypothesis_for_every_labelling(private_release: SmallRelease) -> None:
    """Stumps on a number and a category: all labellings by one test, each once."""
    values = np.array([[-3.0, 0], [1.0, 1], [7.0, 2], [np.nan, 3]])
    found = private_dichotomies(private_release.settings(), values)
    labellings = {tuple(row) for row in found.hypotheses.predict(found.encode(values)).tolist()}
    assert len(labellings) == found.size
    tests: list[NDArray[np.bool_]] = [values[:, 0] >= cut for cut in (-3.0, 1.0, 7.0)]
    tests += [values[:, 1] == code for code in range(4)]
    expected = {
        tuple(np.where(test, above, below).tolist())
        for test in tests
        for above, below in product((0, 1), repeat=2)
    }
    assert labellings == expected


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"privacy__shares__relabel": "0.05"},
            'hypotheses.grid: "private" costs more than 2 ln 2 = 1.386 on the rows relabelled',
        ),
        ({"hypotheses__depth": "3"}, "hypotheses: labellings by trees of 60 rows number "),
    ],
)
def test_what_cannot_be_relabelled_is_refused_before_it_is_charged(
    private_release: SmallRelease, changes: dict[str, str], words: str
) -> None:
    """Too small a part and too many labellings are told from public numbers."""
    release = changed(private_release, **changes)
    with pytest.raises(ConfigurationError) as refused:
        release.open()
    assert str(refused.value).startswith(words)
    assert release.ledger().read_state().release is None


def test_the_bound_does_not_depend_on_the_rows(private_release: SmallRelease) -> None:
    """Rows that are all alike have few labellings and the same public parameters."""
    rows = PrivateRows(values=np.zeros((60, 2)), labels=np.zeros(60, dtype=np.int64))
    assert private_dichotomies(private_release.settings(), rows.values).size == 2
    assert private_release.open(rows=rows).ensemble_size == 5
