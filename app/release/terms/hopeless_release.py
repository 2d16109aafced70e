"""Hopeless releases, which would answer almost nothing: refused, or opened on request.

Whether a release is hopeless follows from the configuration and the public number of rows. If the
operator opens it nevertheless, the ledger's first entry says so, and every later start reads this.

A release is hopeless if some chunks get no row, or if the last permitted unstable answer comes too
early even though all k models agree on every query. Let T be the cutoff, the number of permitted
unstable answers, and u the probability that a query on which all models agree is unstable. A stable
answer uses nothing of T, so on average ``T (1 - u) / u`` stable answers come before unstable answer
T. With scores, an answer whose first stability test (the decision whether it is stable) fails gets
a second test, and each failed test counts as one of the T. A query on which all models agree then
has ``u (1 + u)`` failed tests on average and is stable with probability ``(1 - u) (1 + u)``, which
gives the same number of stable answers.

If all vectors in a public cell get one recorded answer, no number of unstable answers ends the
answering. Then a release is hopeless if more than half of the answers on which all models agree
would be unstable.

The mechanism ``noisy-vote`` gives no unstable answers, so a release that uses it is hopeless only
if chunks get no rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.privacy.mechanisms import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.privacy.mechanism_registration import Calibration
    from app.release.terms.configuration import Configuration
    from app.release.terms.draw_parameters import EnsembleParameters
    from app.release.terms.privacy_unit import Unit

HOPELESS_KEY: Final = "opening.even_if_hopeless"
"""Parameter of the first entry of a release that was opened though it was hopeless."""

HOPELESS_TEXT: Final = "true"
ENSEMBLE_KEY: Final = "answers.ensemble"
REFUSED: Final = "this release is hopeless, and nothing is charged"
ALL_THE_SAME: Final = (
    "to open it all the same, on record: --even-if-hopeless, or even_if_hopeless=True of the"
    " estimator"
)
WARNING: Final = (
    "this release was opened though it is hopeless: its ensemble gives next to no stable answer;"
    " `conclave plan` says what a new one needs"
)


STABLE_ANSWERS_MIN: Final = 50
"""Stable answers at unanimity that an opening needs to be worth its charge."""


UNSTABLE_MAX: Final = 0.5
"""Chance of an unstable answer at unanimity, where there is no T, up to which an opening is
worth its charge."""


def stable_answers(*, cutoff: int, unstable_probability: float) -> float:
    """Return the mean number of stable answers before the last permitted unstable one."""
    if unstable_probability <= 0:
        return math.inf
    return cutoff * (1 - unstable_probability) / unstable_probability


def hopeless_reasons(
    calibration: Calibration, *, ensemble_size: int, sampled_row_count: int, unit: Unit = "row"
) -> tuple[str, ...]:
    """Return the reasons why a release would answer almost nothing; none if it would not.

    Args:
        calibration: the noise parameters of the answers.
        ensemble_size: the number k of models.
        sampled_row_count: n', the number of rows, or persons, that are divided into chunks.
        unit: what n' counts, rows or persons.

    """
    if ensemble_size > sampled_row_count:
        learners = f"{ensemble_size} learners need at least as many {unit}s"
        return (f"{learners}; there are {sampled_row_count}",)
    probability = row_of(calibration).unstable_alike(calibration, ensemble_size)
    alike = (
        f"even if all k = {ensemble_size} learners agree, an answer is unstable with probability"
    )
    if calibration.cutoff is None:
        return (f"{alike} {probability:.3g}",) if probability > UNSTABLE_MAX else ()
    expected = stable_answers(cutoff=calibration.cutoff, unstable_probability=probability)
    if expected >= STABLE_ANSWERS_MIN:
        return ()
    reason = (
        f"{alike} {probability:.3g}, and T = {calibration.cutoff} unstable ones come after"
        f" {expected:.3g} stable ones on average, fewer than {STABLE_ANSWERS_MIN}"
    )
    return (reason,)


class HopelessError(ConfigurationError):
    """A release was refused because it would answer almost nothing; nothing was charged.

    Args:
        reasons: the reasons for the refusal, as texts.
        row_count: the public number n of rows, or of persons.

    """

    def __init__(self, reasons: tuple[str, ...], row_count: int) -> None:
        """Store the reasons, so that planning can add advice."""
        super().__init__(ENSEMBLE_KEY, refusal(reasons))
        self.reasons = reasons
        self.row_count = row_count


def refusal(reasons: Sequence[str], advice: Sequence[str] = ()) -> str:
    """Return the error text for a release that would answer almost nothing, with advice."""
    return f"{REFUSED}: {'; '.join((*reasons, *advice, ALL_THE_SAME))}"


def refuse_hopeless(
    configuration: Configuration, parameters: EnsembleParameters | None, *, row_count: int
) -> bool:
    """Raise an error for a release that would answer almost nothing; return whether it would.

    No error is raised if the operator opens the release nevertheless.

    Args:
        configuration: the release's public parameters.
        parameters: the public parameters of its models; None if answers have no share, and then the
            release is not hopeless.
        row_count: the public number n of rows, or of persons.

    Raises:
        HopelessError: the release would answer almost nothing, and the operator did not ask to open
            it nevertheless; the error has the reasons.

    """
    if parameters is None:
        return False
    reasons = hopeless_reasons(
        parameters.calibration,
        ensemble_size=parameters.size,
        sampled_row_count=parameters.sampled_row_count,
        unit=configuration.settings.data.unit,
    )
    if reasons and not configuration.even_if_hopeless:
        raise HopelessError(reasons, row_count)
    return bool(reasons)


def hopeless_parameter(*, is_hopeless: bool) -> dict[str, str]:
    """Return the first ledger entry's parameter if a release is opened although hopeless."""
    return {HOPELESS_KEY: HOPELESS_TEXT} if is_hopeless else {}


def is_hopeless(opened: ReleaseOpened | None) -> bool:
    """Return whether a release was opened although it would answer almost nothing."""
    return opened is not None and HOPELESS_KEY in opened.parameters


def warn_if_hopeless(opened: ReleaseOpened | None, warn: Callable[[str], None]) -> None:
    """Warn the operator, at every start, of a release that answers almost nothing."""
    if is_hopeless(opened):
        warn(WARNING)
