"""The error tree.

Whether an error occurs, and what it says, never depends on private rows once
a release is open.  Before that, load errors go to the operator's terminal
only, and name a column and a row number, never a value.

::

    ConclaveError
    ├── ConfigurationError          operator: bad configuration or data, exit 2
    │   ├── DataError               a private source that does not fit the schema
    │   ├── HeadFileError           the ledger is older than its head file, or that is none
    │   ├── NoLedgerError           there is none where one is to be read
    │   └── ReleaseMismatchError    the ledger's release is another one
    │       └── UnknownRowsError    its rows are others, or were read otherwise
    ├── VerificationError           the thing asked for does not hold, exit 1
    │   └── NotExportableError      a classifier that the format cannot hold
    ├── MachineError                memory, a file, a thread or a process was refused
    ├── RequestError                caller: refused before anything is charged
    │   ├── MalformedBodyError      malformed-body
    │   ├── UnsupportedMediaTypeError
    │   ├── TooLargeError
    │   ├── InvalidFeaturesError    names the feature
    │   ├── IdempotencyConflictError
    │   ├── BudgetExhaustedError
    │   ├── KeyLimitError           a key's own share is used up
    │   ├── NotPublishedError       no classifier yet
    │   ├── NoStatisticsError       statistics have no share
    │   ├── StatisticsNotOpenError  no table yet
    │   ├── InvalidHypothesisError  names the hypothesis
    │   ├── UnauthorizedError
    │   └── ForbiddenError
    ├── UnavailableError            us: retryable, nothing was released
    │   ├── LedgerUnavailableError
    │   ├── SwitchingError
    │   └── OpeningError
    └── IntegrityError              stop serving
        ├── InvariantError          a broken invariant of our own
        ├── LedgerCorruptError      the ledger does not verify
        ├── UncountedDrawsError     draws that the database refused, and cannot be recorded
        └── ContainedError          an unexpected failure after VOTE; one fixed text
"""

from __future__ import annotations

from typing import ClassVar


class ConclaveError(Exception):
    """Root of every error that Conclave raises on purpose."""


class ConfigurationError(ConclaveError):
    """Bad usage, configuration or data; one line that names the key.

    Args:
        key: the setting, column or option at fault, e.g. ``privacy.shares``.
        problem: what is wrong and what to do, without any private value.

    Attributes:
        others: what else is wrong, a line each; few.

    """

    def __init__(self, key: str, problem: str) -> None:
        """Keep the key and the problem for the one line that is printed."""
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem
        self.others: tuple[str, ...] = ()


class DataError(ConfigurationError):
    """A private source that cannot be read or does not fit the public schema."""

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str]]:
        """Go from one process to another as key and problem."""
        return DataError, (self.key, self.problem)


class HeadFileError(ConfigurationError):
    """A ledger that is older than its head file says, or a head file that cannot be used."""

    def __init__(self, problem: str) -> None:
        """Name the setting, whatever the problem."""
        super().__init__("ledger.head_file", problem)


class NoLedgerError(ConfigurationError):
    """The ledger to be read does not exist."""


class ReleaseMismatchError(ConfigurationError):
    """The ledger holds a release that was opened with other settings or rows."""


class UnknownRowsError(ReleaseMismatchError):
    """Rows that are not recognised, of a release that an earlier version opened."""


class VerificationError(ConclaveError):
    """A requested condition does not hold; the text is a plain account."""


class NotExportableError(VerificationError):
    """A published classifier that the requested format cannot represent."""


class MachineError(ConclaveError):
    """The machine refused memory, a file, a thread or a process to learners.

    Its text is fixed.  It stands for no vote: at an opening it goes to the operator's
    terminal, and where votes were asked for it is contained.
    """

    def __str__(self) -> str:
        """Say what to do; whoever was refused is not told."""
        return (
            "the machine refused memory, a file, a thread or a process to what learners need; "
            "make room and start again, which charges nothing twice (docs/learners.md)"
        )


class RequestError(ConclaveError):
    """A request that is refused before anything is charged."""

    slug: ClassVar[str] = "bad-request"

    def __init__(self, detail: str) -> None:
        """Keep the public detail, which says what to do."""
        super().__init__(detail)
        self.detail = detail


class MalformedBodyError(RequestError):
    """The body is not the JSON that the route takes."""

    slug = "malformed-body"


class UnsupportedMediaTypeError(RequestError):
    """The content type is not one that the route takes."""

    slug = "unsupported-media-type"


class TooLargeError(RequestError):
    """The body, a line or a header is larger than its limit."""

    slug = "too-large"


class InvalidFeaturesError(RequestError):
    """A feature vector that does not fit the public schema."""

    slug = "invalid-features"

    def __init__(self, *, feature: str, problem: str) -> None:
        """Name the feature and what is wrong with it."""
        super().__init__(f"{feature}: {problem}")
        self.feature = feature
        self.problem = problem


class IdempotencyConflictError(RequestError):
    """An idempotency key that was used with another vector."""

    slug = "idempotency-conflict"


class BudgetExhaustedError(RequestError):
    """The release has halted: recorded vectors replay, new ones are refused."""

    slug = "budget-exhausted"


class KeyLimitError(RequestError):
    """The key has had as many answers, or unstable ones, as its limit allows."""

    slug = "key-limit"


class NotPublishedError(RequestError):
    """There is no published classifier yet."""

    slug = "not-published"


class NoStatisticsError(RequestError):
    """The release has no share of epsilon for statistics."""

    slug = "no-statistics"


class StatisticsNotOpenError(RequestError):
    """There is no statistics table yet."""

    slug = "statistics-not-open"


class InvalidHypothesisError(RequestError):
    """A hypothesis that does not fit the public schema, or lies outside the table."""

    slug = "invalid-hypothesis"

    def __init__(self, *, number: int, problem: str) -> None:
        """Say which one it is, counted from 0, and what is wrong with it."""
        super().__init__(f"hypotheses[{number}] {problem}")
        self.number = number


class UnauthorizedError(RequestError):
    """No key, or an unknown one."""

    slug = "unauthorized"


class ForbiddenError(RequestError):
    """A known key whose role does not allow the route."""

    slug = "forbidden"


class UnavailableError(ConclaveError):
    """The service cannot answer now; nothing was released; retry."""

    slug: ClassVar[str] = "unavailable"
    retry_after_seconds: ClassVar[int] = 1

    def __init__(self, detail: str) -> None:
        """Keep the public detail."""
        super().__init__(detail)
        self.detail = detail


class LedgerUnavailableError(UnavailableError):
    """The ledger did not take the commit; nothing was released."""

    slug = "ledger-unavailable"


class SwitchingError(UnavailableError):
    """The published classifier is being drawn."""

    slug = "switching"
    retry_after_seconds = 5


class WaitingError(UnavailableError):
    """Fewer generations vote than the quorum: nothing is charged before enough have joined."""

    slug = "waiting"
    retry_after_seconds = 60


class OpeningError(UnavailableError):
    """The release is being opened."""

    slug = "opening"
    retry_after_seconds = 5


class IntegrityError(ConclaveError):
    """Something that must hold does not; the release stops serving."""

    slug: ClassVar[str] = "release-stopped"


class InvariantError(IntegrityError):
    """A broken invariant of our own code."""


class LedgerCorruptError(IntegrityError):
    """The ledger, or a private piece bound to it, differs from what was written."""


class UncountedDrawsError(IntegrityError):
    """Draws whose commit was refused, which another server has made impossible to record."""

    def __init__(self) -> None:
        """Say why nothing is answered any more."""
        super().__init__(
            "answers that the database refused cannot be counted any more, since another "
            "server answered meanwhile: the release halts"
        )


class ContainedError(IntegrityError):
    """An unexpected failure after VOTE: the charge stays, the text is fixed."""


def invariant(holds: bool, claim: str) -> None:  # noqa: FBT001 -- reads as a sentence at every call
    """Raise :class:`InvariantError` with the broken claim unless it holds."""
    if not holds:
        raise InvariantError(claim)
