"""The opening of the statistics table, which is charged, drawn once and published.

The table is drawn before the first answer, on public points that the operator gives, or after the
models' last answer, on the queries answered. Between the first and the last answer it is refused,
because the privacy proof does not cover a draw at that time. With a joint privacy account (one
budget for the answers and the drawn rules together), the table must also be drawn before the
classifier if it is drawn before the first answer, and after the classifier if it is drawn after the
last answer. After a crash the next try draws again under the same charge, if the table may be drawn
at that time (:mod:`app.release.charged_draw`).

A hypothesis is a rule that gives each row the outcome -1 or +1. The statistics table has, for each
hypothesis of a class, the noisy mean of its outcomes over the private rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, VerificationError
from app.ledger.entries.entry_kinds import StatisticsReleased
from app.privacy.budget.composition import Mechanism
from app.release.charged_draw import Publication
from app.release.classifier.switch import answered_points
from app.release.opening import begin_release, found_state
from app.release.private_state import put_pieces
from app.release.release import ending_where_closed
from app.release.statistics.released_table import POINTS_PIECE, drawn_statistics
from app.release.statistics.statistics_table import ALPHA_MAX, statistics_draw
from app.release.terms.accounting import as_opened
from app.release.terms.answer_terms import check_pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger, Transaction
    from app.noise.source import NoiseSource
    from app.release.progress import Progress
    from app.release.release import Release
    from app.release.statistics.released_table import DrawnStatistics
    from app.release.statistics.statistics_table import StatisticsDraw
    from app.release.terms.configuration import Configuration
    from app.release.terms.privacy_unit import Unit

DRAWING: Final = "drawing the statistics table"
SHARE: Final = "privacy.shares.statistics"
OPTION: Final = "--public"
# Every hypothesis of the table keeps a bit for each; of more queries the first count.
POINTS_MAX: Final = 1 << 16
TOO_MANY_POINTS: Final = f"has more than {POINTS_MAX} rows, and no table takes more: give fewer"
NEEDS_POINTS: Final = "the statistics table is not open: give public points, which open it"
AFTER_ANSWERS: Final = (
    "is for a release that has not answered; this one has given its last answer, and its "
    "queries are the public points: leave the option out"
)
OPEN_ALREADY: Final = "the statistics table is open already; the public points are not used"
BETWEEN: Final = (
    "the statistics table opens before the ensemble's first answer or after its last, and "
    "{answered} answers are given: wait for the last one"
)
BETWEEN_DRAWS: Final = (
    "by one account the statistics table opens before the first answer and the classifier, or "
    "after the last answer and the classifier: wait for the last answer, and draw the classifier"
)


def open_statistics(release: Release, noise: NoiseSource) -> None:
    """Draw and publish the statistics table after the last answer; called on the ledger's thread.

    Raises:
        LedgerUnavailableError: the ledger refused a commit; nothing was published.

    """
    publication = table_of(release.configuration, release.ledger)
    with ending_where_closed(release):
        replace(publication, keep=release.keep_statistics, adopt=release.adopt).draw_once(
            lambda: release.private_statistics or draw_after_answers(release, noise)
        )


def check_openable(configuration: Configuration, ledger: Ledger, *, has_points: bool) -> None:
    """Raise an error if the statistics table may not be drawn now, before a private row is read.

    Raises:
        ConfigurationError: statistics have no share of epsilon, or public points are missing or
            given without being needed.
        ReleaseMismatchError: the ledger's release was opened with other settings.
        VerificationError: the models have given their first answer but not their last, or the
            ledger is closed.

    """
    _require_share(configuration)
    found = found_state(configuration, ledger)
    if not table_of(configuration, ledger).is_due(found):
        return
    if found.answered and has_points:
        raise ConfigurationError(OPTION, AFTER_ANSWERS)
    if not found.answered and not has_points:
        raise ConfigurationError(OPTION, NEEDS_POINTS)


def check_first_table(
    configuration: Configuration, public_values: NDArray[np.float64], *, row_count: int
) -> None:
    """Raise an error for a table that a new release could not draw, before its ledger exists.

    Args:
        configuration: the release's public parameters.
        public_values: m public feature vectors (public points), encoded, shape (m, d).
        row_count: the public number n of rows, or of persons.

    Raises:
        ConfigurationError: statistics have no share of epsilon, public points are missing or too
            many, or the draw is impossible with these settings and this number of rows.

    """
    _require_share(configuration)
    if not len(public_values):
        raise ConfigurationError(OPTION, NEEDS_POINTS)
    _refuse_too_many(public_values)
    statistics_draw(as_opened(configuration, None), public_values, row_count=row_count)


def open_at_once(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: AnyRows,
    public_values: NDArray[np.float64],
    noise: NoiseSource,
    progress: Progress,
    tell: Callable[[str], None],
) -> LedgerState:
    """Draw and publish the statistics table without a server; return the committed state.

    Args:
        configuration: the release's public parameters.
        ledger: the release's ledger, or an empty one for a new release.
        rows: the private rows.
        public_values: the public points, encoded, shape (m, d); with m = 0 the answered queries are
            the points.
        noise: the source of randomness.
        progress: the display of the stages of the work.
        tell: a function that is given a text on the accuracy to expect, which reveals nothing
            private.

    Raises:
        ConfigurationError: a draw is impossible with these settings and this number of rows;
            nothing is charged.
        ReleaseMismatchError: the data or parameters differ from those of the ledger's release.
        VerificationError: the models have given their first answer but not their last.
        LedgerCorruptError: a private value of the release is missing or altered.
        InvariantError: the noise parameters of the answers do not satisfy the privacy claim.
        LedgerUnavailableError: the ledger refused a commit, or another process is drawing; nothing
            is published.

    """
    _refuse_too_many(public_values)
    points = public_values if len(public_values) else _queries(ledger, configuration.schema)
    configuration = as_opened(configuration, ledger.read_state().release)
    draw = statistics_draw(configuration, points, row_count=rows.count)
    begin_release(configuration, ledger=ledger, rows=rows, noise=noise, progress=progress)
    check_pieces(configuration.settings, ledger)
    tell(_worth(draw, point_count=len(points), unit=configuration.settings.data.unit))

    def drawn_table() -> DrawnStatistics:
        progress(DRAWING, 0, 1)
        drawn = drawn_statistics(configuration, draw, draw.draw(rows, noise), points)
        progress(DRAWING, 1, 1)
        return drawn

    table_of(configuration, ledger).draw_once(drawn_table)
    return ledger.read_state()


def table_of(configuration: Configuration, ledger: Ledger) -> Publication[DrawnStatistics]:
    """Return the steps that draw and publish the statistics table once."""

    def append(transaction: Transaction, drawn: DrawnStatistics) -> None:
        digests = put_pieces(transaction, {POINTS_PIECE: drawn.points})
        transaction.append(StatisticsReleased(statistics=drawn.document, private_digests=digests))

    return Publication(
        ledger=ledger,
        is_published=lambda state: state.statistics is not None,
        append=append,
        share=configuration.charges[Mechanism.STATISTICS],
        refuse=_refuse_between,
    )


def draw_after_answers(release: Release, noise: NoiseSource) -> DrawnStatistics:
    """Return a newly drawn statistics table, with the answered queries as its public points."""
    rows = release.rows_for_drawing()
    points = _queries(release.ledger, release.schema)
    draw = statistics_draw(release.configuration, points, row_count=rows.count)
    return drawn_statistics(release.configuration, draw, draw.draw(rows, noise), points)


def _queries(ledger: Ledger, schema: Schema) -> NDArray[np.float64]:
    """Return the first of the queries answered, as many as a table takes."""
    return answered_points(ledger, schema)[:POINTS_MAX]


def _worth(draw: StatisticsDraw, *, point_count: int, unit: Unit) -> str:
    """Say what the table holds and what it may promise at best: n is public."""
    calibration = draw.calibration
    return (
        f"drawing a table of {calibration.query_count} hypotheses on {calibration.cell_count} "
        f"cells that {point_count} public points fix, with {calibration.update_count} updates at "
        f"epsilon {float(calibration.epsilon):g} on {calibration.row_count} {unit}s: alpha is "
        f"{min(ALPHA_MAX, float(calibration.accuracy)):.3g} where they last"
    )


def _refuse_between(state: LedgerState) -> None:
    """Refuse a table between the first answer and the last, where its delta would cost more."""
    if not state.may_open_statistics:
        problem = BETWEEN_DRAWS if state.is_joint else BETWEEN
        raise VerificationError(problem.format(answered=state.answered))


def _require_share(configuration: Configuration) -> None:
    """Refuse a table without a share."""
    if not configuration.has(Mechanism.STATISTICS):
        problem = "is 0, and statistics spend this share; give it one in a new release"
        raise ConfigurationError(SHARE, problem)


def _refuse_too_many(public_values: NDArray[np.float64]) -> None:
    """Refuse more points than a table takes."""
    if len(public_values) > POINTS_MAX:
        raise ConfigurationError(OPTION, TOO_MANY_POINTS)
