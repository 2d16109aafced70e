"""The tree of all errors that Conclave raises on purpose.

Once a release is open, neither the occurrence nor the text of an error depends on private rows.
Before a release is open, errors in reading its rows are shown on the operator's terminal only; they
name a column and the number of a row, and never a value.

A release with a share of epsilon for statistics publishes one table of noisy counts (the statistics
table), from which it answers questions about rules, called hypotheses.

::

    ConclaveError
    ├── ConfigurationError          operator: bad configuration or data, exit 2
    │   ├── DataError               a private source that does not fit the schema
    │   ├── HeadFileError           a ledger older than the note of its newest entry, or a bad note
    │   ├── NoLedgerError           the ledger to be read does not exist
    │   └── ReleaseMismatchError    the ledger contains another release
    │       └── UnknownRowsError    the private rows differ, or were read differently
    ├── VerificationError           a tested condition does not hold, exit 1
    │   └── NotExportableError      a classifier that the export format cannot express
    ├── MachineError                memory, a file, a thread or a process was refused
    ├── RequestError                caller: refused before any charge
    │   ├── MalformedBodyError      malformed-body
    │   ├── UnsupportedMediaTypeError
    │   ├── TooLargeError
    │   ├── InvalidFeaturesError    names the feature
    │   ├── IdempotencyConflictError
    │   ├── BudgetExhaustedError
    │   ├── KeyLimitError           an API key's limit of answers is reached
    │   ├── NotPublishedError       no classifier yet
    │   ├── NoStatisticsError       no share of epsilon for statistics
    │   ├── StatisticsNotOpenError  no statistics table yet
    │   ├── InvalidHypothesisError  names the hypothesis
    │   ├── UnauthorizedError
    │   └── ForbiddenError
    ├── UnavailableError            server: no answer was released, retry
    │   ├── LedgerUnavailableError
    │   ├── SwitchingError
    │   ├── WaitingError            too few generations vote yet
    │   └── OpeningError
    └── IntegrityError              stop serving
        ├── InvariantError          a guarantee of Conclave's own code is broken
        ├── LedgerCorruptError      the ledger does not verify
        ├── UncountedDrawsError     drawn answers that can no longer be recorded
        └── ContainedError          an unexpected failure after models voted; one fixed text
"""

from __future__ import annotations

from typing import ClassVar


class ConclaveError(Exception):
    """The root of every error that Conclave raises on purpose."""


class ConfigurationError(ConclaveError):
    """Wrong usage, configuration or data, described in one line that names the setting.

    Args:
        key: the setting, column or option at fault, e.g. ``privacy.shares``.
        problem: a text on the error and its remedy, without any private value.

    Attributes:
        others: a few other errors in the same rows, one line each.

    """

    def __init__(self, key: str, problem: str) -> None:
        """Store the key and the problem, which are printed as one line."""
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem
        self.others: tuple[str, ...] = ()


class DataError(ConfigurationError):
    """A source of private rows cannot be read or does not fit the public schema."""

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str]]:
        """Go from one process to another as key and problem."""
        return DataError, (self.key, self.problem)


class HeadFileError(ConfigurationError):
    """A ledger is older than the note of its newest entry (head file), or the note is unusable."""

    def __init__(self, problem: str) -> None:
        """Store the problem, under the setting ``ledger.head_file``."""
        super().__init__("ledger.head_file", problem)


class NoLedgerError(ConfigurationError):
    """The ledger to be read does not exist."""


class ReleaseMismatchError(ConfigurationError):
    """The ledger contains a release that was opened with other settings or rows."""


class UnknownRowsError(ReleaseMismatchError):
    """The private rows have another hash than when an older version of Conclave opened the release.

    Either the rows differ, or this version of Conclave reads equal rows differently.
    """


class VerificationError(ConclaveError):
    """A condition that is verified does not hold; the text explains it."""


class NotExportableError(VerificationError):
    """A published classifier cannot be represented in the requested format."""


class MachineError(ConclaveError):
    """The machine refused memory, a file, a thread or a process that the models need.

    The error's text is fixed. While a release opens, the error is shown on the operator's terminal.
    While the models vote, it stops the release; it is never counted as a vote.
    """

    def __str__(self) -> str:
        """Say what to do; whoever was refused is not told."""
        return (
            "the machine refused memory, a file, a thread or a process to what learners need; "
            "make room and start again, which charges nothing twice (docs/learners.md)"
        )


class RequestError(ConclaveError):
    """A request is refused before any budget is spent."""

    slug: ClassVar[str] = "bad-request"

    def __init__(self, detail: str) -> None:
        """Store the public text, which says what to do."""
        super().__init__(detail)
        self.detail = detail


class MalformedBodyError(RequestError):
    """The body of a request is not the JSON that the route expects."""

    slug = "malformed-body"


class UnsupportedMediaTypeError(RequestError):
    """The content type of a request is not one that the route accepts."""

    slug = "unsupported-media-type"


class TooLargeError(RequestError):
    """The body, a line or a header of a request is larger than its limit."""

    slug = "too-large"


class InvalidFeaturesError(RequestError):
    """A feature vector does not fit the public schema."""

    slug = "invalid-features"

    def __init__(self, *, feature: str, problem: str) -> None:
        """Store the feature's name and what is wrong with its value."""
        super().__init__(f"{feature}: {problem}")
        self.feature = feature
        self.problem = problem


class IdempotencyConflictError(RequestError):
    """An idempotency key (a client's name for a query) was used before with another query."""

    slug = "idempotency-conflict"


class BudgetExhaustedError(RequestError):
    """The release has halted: it repeats recorded answers and refuses new queries."""

    slug = "budget-exhausted"


class KeyLimitError(RequestError):
    """The API key has used up its limit of answers, or of unstable answers."""

    slug = "key-limit"


class NotPublishedError(RequestError):
    """The release has not published a classifier yet."""

    slug = "not-published"


class NoStatisticsError(RequestError):
    """The release has no share of epsilon for statistics."""

    slug = "no-statistics"


class StatisticsNotOpenError(RequestError):
    """The release has not drawn and published its statistics table yet."""

    slug = "statistics-not-open"


class InvalidHypothesisError(RequestError):
    """A hypothesis (rule) in a request does not fit the schema or the statistics table."""

    slug = "invalid-hypothesis"

    def __init__(self, *, number: int, problem: str) -> None:
        """Store the hypothesis's index, counted from 0, and what is wrong with it."""
        super().__init__(f"hypotheses[{number}] {problem}")
        self.number = number


class UnauthorizedError(RequestError):
    """The request has no API key, or an unknown one."""

    slug = "unauthorized"


class ForbiddenError(RequestError):
    """The role of the API key does not allow the route."""

    slug = "forbidden"


class UnavailableError(ConclaveError):
    """The service cannot answer now, and released nothing; the client may retry."""

    slug: ClassVar[str] = "unavailable"
    retry_after_seconds: ClassVar[int] = 1

    def __init__(self, detail: str) -> None:
        """Store the public text."""
        super().__init__(detail)
        self.detail = detail


class LedgerUnavailableError(UnavailableError):
    """The ledger cannot be read, or did not accept new entries; no answer was released."""

    slug = "ledger-unavailable"


class SwitchingError(UnavailableError):
    """The models have stopped, and the classifier that answers new queries is not ready yet."""

    slug = "switching"
    retry_after_seconds = 5


class WaitingError(UnavailableError):
    """Too few generations (batches of records) vote at present, so no query can be answered."""

    slug = "waiting"
    retry_after_seconds = 60


class OpeningError(UnavailableError):
    """The release is still being opened, so no query can be answered yet."""

    slug = "opening"
    retry_after_seconds = 5


class IntegrityError(ConclaveError):
    """A check of the release's integrity failed, so the release stops serving."""

    slug: ClassVar[str] = "release-stopped"


class InvariantError(IntegrityError):
    """A condition that Conclave's own code guarantees does not hold."""


class LedgerCorruptError(IntegrityError):
    """The ledger, or private state (for example the models), differs from what was written."""


class UncountedDrawsError(IntegrityError):
    """A drawn answer, which has spent budget, can no longer be recorded in the ledger.

    The commit of the answer failed, and another server of the same ledger answered meanwhile.
    """

    def __init__(self) -> None:
        """Store why nothing is answered any more."""
        super().__init__(
            "answers that the database refused cannot be counted any more, since another "
            "server answered meanwhile: the release halts"
        )


class ContainedError(IntegrityError):
    """An unexpected failure after the models voted; the error's text is fixed and reveals nothing.

    The budget that was spent on the answers stays spent.
    """


def invariant(holds: bool, claim: str) -> None:  # noqa: FBT001 -- reads as a sentence at every call
    """Raise :class:`InvariantError` with the text ``claim`` unless the condition holds."""
    if not holds:
        raise InvariantError(claim)
