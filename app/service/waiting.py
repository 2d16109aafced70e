"""A query in the writer's queue, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from app.errors import (
    ConclaveError,
    ContainedError,
    IntegrityError,
    RequestError,
    UnavailableError,
)
from app.service.answer_query import CONTAINED

if TYPE_CHECKING:
    import asyncio

    from app.service.batch import Decision, Ticket
    from app.service.models import Query

    Pending: TypeAlias = asyncio.Future[Decision | ConclaveError]


@dataclass(slots=True, eq=False)
class Waiting:
    """A query in the queue and the caller that waits for its decision."""

    query: Query | Ticket
    future: Pending

    def settle(self, result: Decision | ConclaveError) -> None:
        """Give the caller its result; one that hung up has no use for it."""
        if not self.future.done():
            self.future.set_result(result)


def contained(error: BaseException) -> UnavailableError | IntegrityError:
    """Return an error that the writer foresees, or a fixed text in place of one that it does not.

    Whatever that one says may be private.
    """
    if isinstance(error, UnavailableError | IntegrityError):
        return error
    return ContainedError(CONTAINED)


def decision_of(result: Decision | ConclaveError) -> Decision | UnavailableError:
    """Return what belongs to one query; raise what stops the release.

    Raises:
        IntegrityError: the release has stopped.

    """
    if isinstance(result, ConclaveError) and not isinstance(
        result, (RequestError, UnavailableError)
    ):
        raise result
    return result
