"""The learner ``grid``: noisy label counts on public grids over up to four numeric features.

The published document has runs of adjacent cells with equal labels; the cell of a row is found by
comparisons alone.

A grid divides the public feature space into cells; a coarse and several finer grids are used.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.persons import WEIGHT_UNITS
from app.data.schema import NumericFeature
from app.data.streaming.part_counts import Tallying
from app.data.streaming.streamed_rows import StreamedRows
from app.errors import ConfigurationError
from app.learning.cells.nested_grid import SCALES_ABOVE, Grid, decided, equal_cuts
from app.learning.encoding.encoded_rows import RowsByPart
from app.learning.encoding.row_codes import IntegerCodes
from app.learning.trees.upper_level_weights import tell_nobody
from app.privacy.learner_properties import GRID
from app.privacy.noisy_grid import mechanism as noisy_grid
from app.release.classifier.classifier_document import GridDocument
from app.release.classifier.learner_registration import ClassifierAsked, LearnerRegistration
from app.release.classifier.written_hypotheses import Written
from app.release.terms.draw_parameters import naming_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.data.vectors import Vector
    from app.learning.trees.upper_level_weights import Told
    from app.noise.source import NoiseSource
    from app.release.terms.privacy_unit import Unit
    from app.settings.settings import Settings

FEATURES_MAX: Final = 4
SIDES: Final = (8, 16, 32)
# Some ten seconds of noise; where labels are many, the finest level is left out, or two.
DRAWS_MAX: Final = 1 << 21


@dataclass(frozen=True, slots=True)
class GridDraw:
    """A draw of noisy label counts on public grids, whose parameters follow from public values.

    Attributes:
        parameters: the public parameters of the mechanism.
        unit: the unit of privacy, a row or a person.

    """

    parameters: noisy_grid.Parameters
    unit: Unit = "row"

    def worth(self, source: str) -> str:
        """Return a text for the operator on the grids and the noise; ``source`` is ignored."""
        del source
        parameters, grid = self.parameters, self.parameters.grid
        sides = ", ".join(map(str, grid.sides))
        scale = float(parameters.scales[-1] / parameters.unit_count)
        return (
            f"counting in grids of {sides} intervals of {len(grid.features)} numbers, at epsilon "
            f"{float(parameters.epsilon):g} on {parameters.row_count} {self.unit}s: noise of scale "
            f"{scale:.3g} in each of {parameters.draw_count} counts"
        )

    def labels(self, rows: AnyRows, noise: NoiseSource) -> NDArray[np.int64]:
        """Return the label of every cell of the finest grid, computed from noisy counts."""
        grid = self.parameters.grid
        if isinstance(rows, StreamedRows):
            coding = IntegerCodes(grid.encode, columns=len(grid.features), largest=grid.sides[-1])
            of_rows = partial(noisy_grid.tally, self.parameters)
            counting = Tallying(of_rows, coding, rows.unit_count)
            tally = rows.counted(counting, coding)
            counts = noisy_grid.draw_counted(self.parameters, tally, noise)
            return decided(grid, counts, self.parameters.scales)
        encoded = RowsByPart(grid.encode, rows.values)
        private_value = (encoded, rows.labels)
        counts = noisy_grid.draw(self.parameters, private_value, noise, rows.weights)
        return decided(grid, counts, self.parameters.scales)

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Return the labels of cells in their published form; the budget was charged before."""
        del schema, told
        return Written(grid=grid_document(self.parameters.grid, self.labels(rows, noise)))


def grid_draw(asked: ClassifierAsked) -> GridDraw:
    """Return the parameters of noisy label counts, from the schema and the number of rows n.

    Raises:
        ConfigurationError: the features are not one to four numbers, or the noise needs more than
            64 bits; the message names what to change.

    """
    settings = asked.settings
    features, class_count = _numbers(settings), len(settings.data.classes)
    numbers = noisy_grid.number_count(class_count)
    sides: list[int] = []
    for side in SIDES:
        if numbers * sum(each ** len(features) for each in (*sides, side)) <= DRAWS_MAX:
            sides.append(side)
    if not sides:
        problem = f'"grid" takes fewer than {class_count} labels on {len(features)} features'
        raise ConfigurationError("classifier.learner", problem)
    cuts = tuple(equal_cuts(each.lower, each.upper, parts=sides[-1]) for each in features.values())
    epsilon = asked.charge.epsilon
    with naming_share(asked.charge.mechanism):
        parameters = noisy_grid.Parameters(
            grid=Grid(tuple(features), cuts, tuple(sides)),
            class_count=class_count,
            row_count=asked.row_count,
            epsilon=epsilon,
            level_epsilons=noisy_grid.divided(epsilon, len(sides)),
            unit_count=1 if settings.data.unit == "row" else WEIGHT_UNITS,
        )
    return GridDraw(parameters, settings.data.unit)


def _numbers(settings: Settings) -> dict[int, NumericFeature]:
    """Return the features that an empty list of tests does not leave out, by their index."""
    listed = settings.published.tests
    found = {}
    for index, feature in enumerate(settings.data.public_schema().features):
        if listed.get(feature.name) == ():
            continue
        if not isinstance(feature, NumericFeature):
            problem = f'{feature.name}: "grid" takes numbers only; leave it out by an empty list'
            raise ConfigurationError("classifier.tests", problem)
        found[index] = feature
    if len(found) > FEATURES_MAX:
        problem = (
            f'"grid" takes {FEATURES_MAX} numbers at most, and here are {len(found)}: leave some '
            "out by an empty list"
        )
        raise ConfigurationError("classifier.tests", problem)
    return found


def grid_share(asked: ClassifierAsked) -> float:
    """Return the fraction of rows that must have a label so that it is learned despite noise.

    All rows with the label are assumed to be in one cell.
    """
    parameters = grid_draw(asked).parameters
    lead = SCALES_ABOVE * min(parameters.scales) / parameters.unit_count
    return float(lead) / asked.row_count


COUNTED: Final = LearnerRegistration(learner=GRID, prepare=grid_draw, smallest_share=grid_share)


def grid_document(grid: Grid, labels: NDArray[np.int64]) -> GridDocument:
    """Return a classifier document that stores a grid's cell labels as runs of equal labels."""
    runs = [(label, len(list(cells))) for label, cells in groupby(labels.tolist())]
    written, lengths = zip(*runs, strict=True)
    return GridDocument(grid.features, grid.cuts, written, lengths)


class PublishedGrid:
    """A published grid of labels that is ready to predict."""

    def __init__(self, document: GridDocument) -> None:
        """Expand the runs of labels into an array with one entry per grid cell."""
        self._axes = tuple(zip(document.features, document.cuts, strict=True))
        self._side = len(document.cuts[0]) + 1
        labels = np.array(document.labels, dtype=np.min_scalar_type(max(document.labels)))
        self._labels = np.repeat(labels, document.lengths)

    def class_index(self, vector: Vector) -> int:
        """Return the class index for a feature vector."""
        cell = 0
        for feature, cuts in self._axes:
            value = vector[feature]
            cell *= self._side
            if isinstance(value, float) and not math.isnan(value):
                cell += bisect_right(cuts, value)
        return int(self._labels[cell])
