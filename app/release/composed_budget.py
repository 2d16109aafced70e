"""The joint privacy promise of all releases in one database; a new release's settings state it.

The budget of every other release is added, whatever rows it has. Different rows may belong to the
same people: a data set with one more row is nearly the same data set. Whether two data sets are
equal is private, so nothing public may depend on it. Only the error that refuses a new release says
which releases have the same rows; the operator reads it before anything is charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.data.streaming.streamed_rows import fingerprint_by
from app.errors import ReleaseMismatchError
from app.ledger.entries.chain import FIRST_RELEASE
from app.ledger.entries.fold import DELTA_KEY, EPSILON_KEY
from app.ledger.releases import Promise, composed, promised, total
from app.release.streaming import fingerprint_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.data.rows import PrivateRows
    from app.data.streaming.streamed_rows import StreamedRows
    from app.ledger.entries.digests import Digests
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.release.terms.configuration import Configuration

NAME: Final = "release.name"
SAME_ROWS: Final = "on the same rows"
OTHER_ROWS: Final = "on other rows, perhaps of the same people"
COPY: Final = (
    'no release "{name}" in the ledger, which is a backup or was retired to be moved: what is '
    "opened in the other beside the releases in it cannot be seen; correct the name, or open it "
    "in the ledger that goes on"
)
PLAIN_EXPONENT_MIN: Final = -5
# A setting has at most 100 digits and an exponent of 100, so that sums have fewer than this.
DIGITS: Final = Context(prec=300)


@dataclass(frozen=True, slots=True)
class Beside:
    """The releases that a database already contains, and the rows of a new release to open.

    Attributes:
        openings: the first ledger entries of the releases in the database, in order.
        is_backup: whether this database is a backup, or was retired because it was moved. Another
            database may then continue its ledger, so a new release is refused.
        digests: the functions that compute digests with the database's secret key.
        rows: the rows of the release to open.

    """

    openings: Sequence[ReleaseOpened]
    digests: Digests
    rows: PrivateRows | StreamedRows
    is_backup: bool = False

    def check(self, configuration: Configuration) -> None:
        """Raise an error if the stated joint budget is below the sum of all releases' budgets.

        Raises:
            ReleaseMismatchError: the stated budget is too small, or missing; the message names the
                setting, the budgets in the database, and the least budget to state.

        """
        if not self.openings:
            return
        if self.is_backup:
            raise ReleaseMismatchError(NAME, COPY.format(name=configuration.name))
        there = total(self.openings)
        needed = Promise(there.epsilon + configuration.epsilon, there.delta + configuration.delta)
        given = configuration.settings.privacy.composed
        if given.epsilon is None or given.delta is None:
            raise ReleaseMismatchError(NAME, self._unstated(configuration.name, needed))
        for key, stated, least in (
            (EPSILON_KEY, given.epsilon, needed.epsilon),
            (DELTA_KEY, given.delta, needed.delta),
        ):
            if Fraction(stated) < least:
                problem = (
                    f"is {exact_text(Fraction(stated))}, and the releases of this ledger come to "
                    f"{exact_text(least)} with this one: {self._budgets()}; state at least that"
                )
                raise ReleaseMismatchError(key, problem)

    def _unstated(self, name: str, needed: Promise) -> str:
        count = len(self.openings)
        return (
            f'no release "{name}" in the ledger, which holds {self._listed()}; correct the name, '
            f"or open {'a second' if count == 1 else 'a further'} release by stating in "
            "[privacy.composed] what all promise together: at least "
            f"epsilon = {exact_text(needed.epsilon)}, delta = {exact_text(needed.delta)}"
        )

    def _listed(self) -> str:
        """Name the releases that are there, and tell which have the same rows."""
        return ", ".join(
            f'"{opened.name}" {SAME_ROWS if self._is_on_same_rows(opened, number) else OTHER_ROWS}'
            for number, opened in enumerate(self.openings, start=FIRST_RELEASE)
        )

    def _is_on_same_rows(self, opened: ReleaseOpened, number: int) -> bool:
        key = self.digests.fingerprint_key(number)
        return fingerprint_by(fingerprint_rule(opened), self.rows, key) == opened.fingerprint

    def _budgets(self) -> str:
        """Give epsilon and delta of each release that is there."""
        return ", ".join(
            f'"{opened.name}" epsilon {exact_text(promised(opened).epsilon)}, '
            f"delta {exact_text(promised(opened).delta)}"
            for opened in self.openings
        )


def composed_view(openings: Sequence[ReleaseOpened]) -> dict[str, object] | None:
    """Return the joint promise of all releases for ``GET /budget``; None if there is only one."""
    promise = composed(openings)
    if promise is None:
        return None
    return {
        "epsilon": float(promise.epsilon),
        "delta": float(promise.delta),
        "releases": len(openings),
    }


def warn_of_others(openings: Sequence[ReleaseOpened], warn: Callable[[str], None]) -> None:
    """Log one line on the joint privacy promise of all releases in a database."""
    promise = composed(openings)
    if promise is not None and len(openings) > 1:
        warn(
            f"{len(openings)} releases share this ledger; about a person in the rows of each they "
            f"promise epsilon {exact_text(promise.epsilon)}, delta {exact_text(promise.delta)}"
        )


def exact_text(cost: Fraction) -> str:
    """Return an exact epsilon or delta as text for a configuration, as a decimal if possible."""
    decimal = DIGITS.divide(Decimal(cost.numerator), Decimal(cost.denominator))
    if Fraction(decimal) != cost:
        return str(cost)
    plain = decimal.normalize(DIGITS)
    return f"{plain:f}" if plain.adjusted() >= PLAIN_EXPONENT_MIN else f"{plain:e}"
