"""How widely learners agree, tried out on made-up people: no private row is read.

Relabelled rows are realised by a hypothesis of the public class, exactly.  Which one is
private, and how people are distributed is known by public shares alone.  So a chunk of
n/k made-up people is labelled by a made-up hypothesis, the very learner of the release
is fitted on it, and so on for some chunks and some hypotheses: the share of votes that
a query gets follows, hypothesis by hypothesis.

What is assumed, and may be wrong: features are independent unless public points are
given; every hypothesis of the class is as likely to be the one that relabels; queries
are like the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.ensembles.fit import fit_ensemble
from app.ensembles.populations import made_up_hypothesis
from app.hypotheses.cell_class import CellClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.ensembles.fit import Learner
    from app.ensembles.populations import Population

QUERIES: Final = 512
# Rows of all chunks of one hypothesis; beyond it fewer chunks are fitted.
ROWS_MAX: Final = 1 << 17
# Chunks of more rows are tried out with so many, which can only disagree more.
CHUNK_ROWS_MAX: Final = 1 << 12
LEARNERS_MIN: Final = 24
# Over cells, whose learners vote on a row of their own each, fewer tell enough.
CELL_ROWS_MAX: Final = 1 << 15
_PEOPLE: Final = b"conclave made-up people "
_RULE: Final = b"conclave made-up rule "
_SECRET: Final = b"conclave made-up release"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How learners on chunks of one size agree.

    Attributes:
        leads: by which share of the votes the first label leads the second, in [0, 1],
            hypothesis by query, shape ``(H, Q)``.
        learner_count: learners that were fitted for each hypothesis.
        with_cells: whether learners vote by cell, those of no row cancelling each other.

    """

    leads: NDArray[np.float64]
    learner_count: int
    with_cells: bool = False

    @property
    def vote_variance(self) -> NDArray[np.float64]:
        """Return the variance of what one learner adds to each lead, shape ``(H, Q)``."""
        variance: NDArray[np.float64] = self.leads * (1 - self.leads)
        return variance if self.with_cells else 1 - self.leads**2


def try_out(
    population: Population,
    learner: Learner,
    *,
    chunk_row_count: int,
    learner_count: int,
    hypothesis_count: int,
) -> Agreement:
    """Fit learners on made-up chunks and let them vote.

    Args:
        population: whom rows and queries are like.
        learner: the release's own, its class included.
        chunk_row_count: rows of a chunk, at least 1.
        learner_count: chunks a hypothesis, at most.
        hypothesis_count: hypotheses tried, at least 1.

    """
    by_cell = votes_by_cell(learner)
    rows = min(chunk_row_count, CHUNK_ROWS_MAX)
    most = CELL_ROWS_MAX if by_cell else ROWS_MAX
    learners = min(learner_count, max(LEARNERS_MIN, most // rows))
    leads = [
        _leads(population, learner, index, rows, learners) for index in range(hypothesis_count)
    ]
    return Agreement(np.stack(leads), learners, with_cells=by_cell)


def votes_by_cell(learner: Learner) -> bool:
    """Whether learners label public cells: those of no row cancel, so there is no cliff."""
    return learner.estimator is None and isinstance(learner.hypothesis_class, CellClass)


def _leads(
    population: Population, learner: Learner, index: int, rows: int, learners: int
) -> NDArray[np.float64]:
    """Return the leads on all queries under one hypothesis, shape ``(Q,)``."""
    searched, name = learner.hypothesis_class, str(index).encode()
    queries = population.rows(QUERIES, _PEOPLE + b"who ask " + name)
    hypothesis = made_up_hypothesis(searched, searched.encode(queries), _RULE + name)
    # Points are a sample of people, and as uncertain as another sample would differ.
    people = population.resampled(_PEOPLE + b"sampled " + name)
    values = people.rows(rows * learners, _PEOPLE + name)
    ensemble = fit_ensemble(
        learner,
        values,
        hypothesis.predict(searched.encode(values)),
        permutation=np.arange(len(values), dtype=np.int64),
        offsets=np.arange(learners + 1, dtype=np.int64) * rows,
        secret=_SECRET + name,
    )
    votes = np.sort(ensemble.vote_counts(queries), axis=1)
    leads: NDArray[np.float64] = (votes[:, -1] - votes[:, -2]) / learners
    return leads
