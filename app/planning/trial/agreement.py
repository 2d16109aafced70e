"""The agreement of models on queries, measured on made-up data; no private row is read.

A release may relabel its rows: a privately drawn rule of a public class then gives the labels of
all rows. The trial does not know this rule, which depends on private rows, and knows the
distribution of people only by public frequencies. So a made-up rule labels made-up people, and the
release's own learning method trains models on some chunks of n/k of these people each, where n is
the number of rows and k the number of models. This is repeated for several made-up rules. The
result is the fraction of votes that each label of a query gets under each rule. Models that label
public cells need no rule and no training: the models that vote on a cell are those whose chunk has
a row in it.

The trial makes assumptions that may be wrong: features are independent unless public points are
given; relabelling rules are like those drawn for labels on which every feature has an effect;
queries have the same distribution as the rows, and each is asked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.ensemble import fit_ensemble
from app.learning.learner_seeds import generator
from app.learning.registry import row_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellSplits
    from app.learning.ensemble import Learner
    from app.planning.trial.made_up_records import MadeUpRules, Population

QUERIES: Final = 512
# Rows of all chunks of one hypothesis; beyond it fewer chunks are fitted.
ROWS_MAX: Final = 1 << 17
# Chunks of more rows are tried out with so many, which can only disagree more.
CHUNK_ROWS_MAX: Final = 1 << 12
LEARNERS_MIN: Final = 24
# Over cells only their shares are wanted: of people made up, and of those who ask.
CELL_PEOPLE: Final = 1 << 15
CELL_QUERIES: Final = 1 << 12
# What a share is thought to be before any person is seen there (Jeffreys): half a person.
CELL_PRIOR: Final = 0.5
_PEOPLE: Final = b"conclave made-up people "
_SECRET: Final = b"conclave made-up release"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The measured agreement of models that are trained on chunks of one size.

    Attributes:
        leads: for H made-up rules and Q queries, the fraction of votes by which the label with the
            most votes leads the next one, between 0 and 1, shape ``(H, Q)``.
        learner_count: the number of models that were trained for each rule.
        with_cells: whether models label public cells; such models are no trees, and have no small
            leaves on which they may disagree.

    """

    leads: NDArray[np.float64]
    learner_count: int
    with_cells: bool = False

    @property
    def vote_variance(self) -> NDArray[np.float64]:
        """Return the variance of one model's vote, per made-up labelling rule and query.

        A vote is counted as +1 for the label with the most votes and -1 for the next one; the shape
        is ``(H, Q)`` for H rules and Q queries.
        """
        variance: NDArray[np.float64] = 1 - self.leads**2
        return variance


def try_out(
    rules: MadeUpRules,
    learner: Learner,
    *,
    chunk_row_count: int,
    learner_count: int,
    hypothesis_count: int,
) -> Agreement:
    """Return how well models agree that are trained on chunks of made-up rows.

    Args:
        rules: the made-up labelling rules, with the distribution of rows and queries.
        learner: the release's learning method.
        chunk_row_count: the number of rows of a chunk, at least 1.
        learner_count: the largest number of chunks for each rule.
        hypothesis_count: the number of made-up rules to try, at least 1.

    """
    splits = splits_of(learner)
    if splits is not None:
        found = [
            _cell_leads(rules.population, splits, index, chunk_row_count, learner_count)
            for index in range(hypothesis_count)
        ]
        return Agreement(np.stack(found), learner_count, with_cells=True)
    rows = min(learner.chunk_rows(chunk_row_count), CHUNK_ROWS_MAX)
    learners = min(learner_count, max(LEARNERS_MIN, ROWS_MAX // rows))
    leads = [_leads(rules, learner, index, rows, learners) for index in range(hypothesis_count)]
    fewest = min(len(each) for each in leads)
    return Agreement(np.stack([each[:fewest] for each in leads]), learners)


def splits_of(learner: Learner) -> CellSplits | None:
    """Return the public cells that the models label; None for any other kind of model."""
    searched = learner.hypothesis_class
    splits = row_of(searched).splits if learner.estimator is None else None
    return None if splits is None else splits(searched)


def votes_by_cell(learner: Learner) -> bool:
    """Return whether a model is only a label for each cell of a public partition."""
    return splits_of(learner) is not None


def _leads(
    rules: MadeUpRules, learner: Learner, index: int, rows: int, learners: int
) -> NDArray[np.float64]:
    """Return the leads on all queries under one hypothesis, shape ``(Q,)``."""
    name, population = str(index).encode(), rules.population
    queries = population.distinct(QUERIES, _PEOPLE + b"who ask " + name)
    # Points are a sample of people, and as uncertain as another sample would differ.
    people = population.resampled(_PEOPLE + b"sampled " + name)
    values = people.rows(rows * learners, _PEOPLE + name)
    ensemble = fit_ensemble(
        learner,
        values,
        rules.labels(index, values),
        permutation=np.arange(len(values), dtype=np.int64),
        offsets=np.arange(learners + 1, dtype=np.int64) * rows,
        secret=_SECRET + name,
    )
    votes = np.sort(ensemble.vote_counts(queries), axis=1)
    leads: NDArray[np.float64] = (votes[:, -1] - votes[:, -2]) / learners
    return leads


def _cell_leads(
    population: Population, splits: CellSplits, index: int, rows: int, learners: int
) -> NDArray[np.float64]:
    """Return the leads on queries of each cell, by shares that made-up people leave open.

    Rows of a cell have one label, so that its chunks with a row there vote for it, and the
    votes of all others cancel.
    """
    name = str(index).encode()
    people = population.points
    if people is None:
        people = population.rows(CELL_PEOPLE, _PEOPLE)
    queries = population.distinct(CELL_QUERIES, _PEOPLE + b"who ask cells")
    cells, asked = (splits.places(each) for each in (people, queries))
    counts = np.bincount(cells, minlength=splits.cell_count)
    drawn = generator(_PEOPLE + b"of cells " + name)
    shares = drawn.dirichlet(counts + CELL_PRIOR)
    voting = drawn.binomial(learners, -np.expm1(rows * np.log1p(-np.minimum(shares, 1 - 1e-12))))
    leads: NDArray[np.float64] = voting[asked] / learners
    return leads
