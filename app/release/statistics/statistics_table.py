"""The statistics table's public hypothesis class, its parameters, and its one noisy draw.

The class follows from the schema, the section ``[statistics]`` of the configuration, and the public
points. The private rows are used only as counts in public cells, and only through the mechanism of
``app.privacy.multiplicative_weights``. The mechanism goes through all hypotheses in several passes,
and corrects the table by a noisy count where it differs too much from the rows; the number of these
corrections is limited.

A hypothesis is a rule that gives each row the outcome -1 or +1. The statistics table has, for each
hypothesis of a class, the noisy mean of its outcomes over the private rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.feature_tests import public_tests
from app.data.streaming.part_counts import Tallying
from app.data.streaming.streamed_rows import StreamedRows
from app.errors import ConfigurationError
from app.learning.encoding.row_codes import IntegerCodes
from app.learning.statistics_tables.representative_domain import CutGrid, product_domain
from app.learning.statistics_tables.table_hypotheses import (
    CHOSEN_POINT_COUNT_MAX,
    CHOSEN_QUERY_COUNT_MAX,
    chosen_tests,
    covering,
    point_count,
    query_count_bound,
    refuse_table,
)
from app.privacy.budget.composition import Mechanism
from app.privacy.multiplicative_weights import calibration as accounting
from app.privacy.multiplicative_weights import mechanism as multiplicative_weights
from app.release.terms.configuration import charges_by_mechanism, no_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.streaming.streamed_rows import AnyRows
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.learning.statistics_tables.representative_domain import RepresentativeDomain
    from app.noise.source import NoiseSource
    from app.privacy.budget.composition import Charge
    from app.privacy.multiplicative_weights.calibration import (
        QueryReleaseBudget,
        QueryReleaseCalibration,
    )
    from app.privacy.multiplicative_weights.mechanism import Table
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings


# A value lies in [-1, 1]: an error of 2 is no promise.
ALPHA_MAX: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsDraw:
    """Every public parameter of one draw of the statistics table.

    Attributes:
        tests: the feature tests of the hypotheses.
        grid: the division of the public feature space by these tests.
        domain: the hypotheses that the public points determine, and the cells of the feature space
            in which private rows are counted; a hypothesis gives all rows of a cell one outcome.
        calibration: the noise parameters for the statistics' share of the budget.

    """

    tests: tuple[BinaryTest, ...]
    grid: CutGrid
    domain: RepresentativeDomain
    calibration: QueryReleaseCalibration

    def draw(self, rows: AnyRows, noise: NoiseSource) -> Table:
        """Draw the statistics table, whose budget was charged before."""
        private_cell_count = self._counted(rows)
        parameters = multiplicative_weights.Parameters.calibrated(
            self.calibration, self.domain.labels
        )
        return multiplicative_weights.draw(parameters, private_cell_count, noise)

    def _counted(self, rows: AnyRows) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the rows in every cell, or what they count for; secret."""
        if not isinstance(rows, StreamedRows):
            return self.domain.private_count_at(self.grid.places(rows.values), rows.weights)
        coding = IntegerCodes(self._places, columns=1, largest=self.grid.point_count - 1)
        tally = rows.counted(Tallying(self._at_places, coding, rows.unit_count), coding)
        return tally.weighed if rows.is_of_persons else tally.counts

    def _places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.grid.places(values)[:, np.newaxis]

    def _at_places(self, places: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        del labels
        found = self.domain.private_count_at(places[:, 0].astype(np.int64))
        return found.astype(np.int64)


def statistics_draw(
    configuration: Configuration, public_values: NDArray[np.float64], *, row_count: int
) -> StatisticsDraw:
    """Return the parameters for drawing the statistics table, which depend on public points.

    Args:
        configuration: the release's public parameters.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m at least
            1.
        row_count: the public number n of rows, or of persons.

    Raises:
        ConfigurationError: no such table exists; the message names what to change.

    """
    settings, covered = configuration.settings, configuration.settings.covered
    tests = _tests(settings, public_values)
    refuse_table(covered.kind, tests, depth=covered.depth)
    hypotheses = covering(covered.kind, tests, public_values, depth=covered.depth)
    grid = CutGrid.of(tests, len(configuration.schema.features))
    domain = product_domain(hypotheses, grid.axes)
    budget = _budget(
        settings,
        configuration.charges[Mechanism.STATISTICS],
        row_count=row_count,
        query_count=len(hypotheses),
        cell_count=domain.cell_count,
    )
    calibration = _calibrated(settings, budget)
    accounting.check(calibration)
    return StatisticsDraw(tests=tests, grid=grid, domain=domain, calibration=calibration)


def check_statistics_draw(settings: Settings, *, row_count: int | None) -> None:
    """Raise an error for a configuration whose statistics table could not be drawn later.

    The public points are not known yet, and fewer or more tests are chosen depending on them. The
    check assumes the smallest number: one test of each feature for which the configuration lists no
    tests.

    Args:
        settings: the whole configuration.
        row_count: the public number n of rows, or of persons; None if it is unknown, and then only
            the table's size is checked.

    Raises:
        ConfigurationError: the draw is impossible; the message names what to change.

    """
    charge, covered = charges_by_mechanism(settings).get(Mechanism.STATISTICS), settings.covered
    if charge is None:
        return
    tests = _tests(settings, no_points(settings))
    refuse_table(covered.kind, tests, depth=covered.depth)
    if row_count is None:
        return
    budget = _budget(
        settings,
        charge,
        row_count=row_count,
        query_count=query_count_bound(covered.kind, tests, depth=covered.depth),
        cell_count=point_count(tests),
    )
    if _asked_for(settings, budget) is None:
        accounting.calibrate(budget, update_count=1)  # the least that a share must afford


def statistics_forecasts(settings: Settings, *, row_count: int) -> tuple[StatisticsForecast, ...]:
    """Return the expected accuracy of a table on few public points, and on many.

    The two forecasts are equal if every feature has a list of tests.

    Args:
        settings: the whole configuration, which :func:`check_statistics_draw` accepted.
        row_count: the public number n of rows, or of persons.

    """
    charge, covered = charges_by_mechanism(settings).get(Mechanism.STATISTICS), settings.covered
    if charge is None:
        return ()
    tests = _tests(settings, no_points(settings))
    smallest = (query_count_bound(covered.kind, tests, depth=covered.depth), point_count(tests))
    is_fixed = len(settings.statistics.tests) == len(settings.data.features)
    largest = smallest if is_fixed else (CHOSEN_QUERY_COUNT_MAX, CHOSEN_POINT_COUNT_MAX)
    return tuple(
        _forecast(settings, charge, row_count=row_count, query_count=queries, cell_count=cells)
        for queries, cells in (smallest, largest)
    )


def _forecast(
    settings: Settings, charge: Charge, *, row_count: int, query_count: int, cell_count: int
) -> StatisticsForecast:
    budget = _budget(
        settings, charge, row_count=row_count, query_count=query_count, cell_count=cell_count
    )
    calibration = _calibrated(settings, budget)
    return StatisticsForecast(
        hypothesis_count=query_count,
        cell_count=cell_count,
        update_count=calibration.update_count,
        alpha=min(ALPHA_MAX, float(calibration.accuracy)),
        # What persons count for is rounded, by which an update may gain less than is proved.
        is_proven=calibration.lasts and settings.data.unit == "row",
    )


def _tests(settings: Settings, public_values: NDArray[np.float64]) -> tuple[BinaryTest, ...]:
    """Return the tests of the table on these points."""
    schema, covered = settings.data.public_schema(), settings.covered
    listed = [schema.feature_indices[name] for name in settings.statistics.tests]
    tests = public_tests(schema, bins=covered.bins, listed=covered.tests)
    return chosen_tests(covered.kind, tests, public_values, depth=covered.depth, listed=listed)


def _budget(
    settings: Settings, charge: Charge, *, row_count: int, query_count: int, cell_count: int
) -> QueryReleaseBudget:
    return accounting.QueryReleaseBudget(
        epsilon=charge.epsilon,
        delta=charge.delta,
        row_count=row_count,
        query_count=query_count,
        cell_count=cell_count,
        failure=Fraction(repr(settings.answers.beta)),
    )


def _calibrated(settings: Settings, budget: QueryReleaseBudget) -> QueryReleaseCalibration:
    """Calibrate as asked; an accuracy that these points put out of reach, as if not asked.

    It was within reach of the class when the release opened, and the table says what it
    promises: a server must not stop for it after the last answer.
    """
    try:
        calibration = _asked_for(settings, budget)
    except ConfigurationError:
        calibration = None
    if calibration is not None:
        return calibration
    updates = accounting.balanced_update_count(budget)
    return accounting.calibrate(budget, update_count=updates)


def _asked_for(settings: Settings, budget: QueryReleaseBudget) -> QueryReleaseCalibration | None:
    """Calibrate for the number of updates or the accuracy that is set; None for neither."""
    chosen = settings.statistics
    if chosen.accuracy is not None:
        return accounting.calibrate_accuracy(budget, accuracy=Fraction(chosen.accuracy))
    if chosen.updates is not None:
        return accounting.calibrate(budget, update_count=chosen.updates)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsForecast:
    """The expected accuracy of a statistics table of one size.

    Attributes:
        hypothesis_count: the number of hypotheses in the table.
        cell_count: the number of cells in which rows are counted.
        update_count: the largest number of noisy counts that are drawn to correct the table.
        alpha: the largest error of a mean outcome if all passes over the hypotheses are completed;
            at most 2, which promises nothing.
        is_proven: whether it is proved that this number of noisy counts suffices to complete all
            passes, whatever the rows are. If not, alpha holds only if the counts happen to suffice,
            and the error is larger if they do not.

    """

    hypothesis_count: int
    cell_count: int
    update_count: int
    alpha: float
    is_proven: bool
