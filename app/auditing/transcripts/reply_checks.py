"""Promises that an outsider can check exactly from the replies of one run.

Every answer that a server sends is counted, recorded, and repeated for the same query, also after a
restart, and the number of unstable answers does not exceed the cutoff. A server process that
forgets its answers breaks these promises in every run, whereas a statistical test would need many
runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NUMBERED: Final = "fresh answers are numbered from 1 without gaps, across restarts"
COUNTED: Final = "what was answered is counted as soon as it is said, across restarts"
ENDED: Final = "no answer is unstable beyond the cutoff, across restarts"
REPEATED: Final = "what was answered is answered again alike, across restarts"
KEPT: Final = "a ledger's entries stay as they were, across restarts"
BARE: Final = "an unstable answer has no label where it abstains"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as a client received it.

    Attributes:
        question: a number for the queried vector; equal vectors have equal numbers.
        query_id: the answer's number in the reply; None without one.
        label: the label in the reply; None without one.
        stable: whether the reply says that the answer is stable.
        replayed: whether the reply says that the answer is a recorded one.

    """

    question: int
    query_id: int | None
    label: str | None
    stable: bool
    replayed: bool

    @property
    def is_fresh(self) -> bool:
        """Whether the answer is new, not a repeated recorded one."""
        return self.query_id is not None and not self.replayed

    @property
    def said(self) -> tuple[int | None, str | None, bool]:
        """The parts of this answer that must be the same if the query is repeated."""
        return self.query_id, self.label, self.stable


@dataclass(frozen=True, slots=True)
class Life:
    """Everything that one server process sent, from its start to its end.

    Attributes:
        answers: the answers, in order.
        answered: the number of new answers that ``GET /budget`` states after the last answer.
        unstable: the number of unstable answers that ``GET /budget`` states after the last answer.
        entries: the hashes of the ledger's entries, from the first one on.

    """

    answers: tuple[Answer, ...]
    answered: int
    unstable: int
    entries: tuple[str, ...]


def broken_promises(lives: Sequence[Life], *, cutoff: int | None, abstains: bool) -> frozenset[str]:
    """Return the promises that one run of a release broke, as text; none if it kept all.

    Args:
        lives: everything that the release's server processes sent, one process after another, on
            one ledger.
        cutoff: the cutoff T, the largest number of unstable answers; None without a cutoff.
        abstains: whether an unstable answer has no label.

    """
    answers = [answer for life in lives for answer in life.answers]
    fresh = [answer for answer in answers if answer.is_fresh]
    unstable = [answer for answer in fresh if not answer.stable]
    checks = {
        NUMBERED: [answer.query_id for answer in fresh] == list(range(1, len(fresh) + 1)),
        COUNTED: all(_is_counted(lives)),
        ENDED: cutoff is None or len(unstable) <= cutoff,
        REPEATED: _are_repeated(answers),
        KEPT: _are_kept(lives),
        BARE: not abstains or all(answer.label is None for answer in unstable),
    }
    return frozenset(promise for promise, holds in checks.items() if not holds)


def _is_counted(lives: Sequence[Life]) -> Iterator[bool]:
    """Yield for each process whether its counters are those of what was heard so far."""
    answered = unstable = 0
    for life in lives:
        fresh = [answer for answer in life.answers if answer.is_fresh]
        answered += len(fresh)
        unstable += sum(not answer.stable for answer in fresh)
        yield (life.answered, life.unstable) == (answered, unstable)


def _are_repeated(answers: Sequence[Answer]) -> bool:
    """Tell whether recorded answers, and no others, are given again.

    Answers without a number come from what is published: they are nobody's draws.
    """
    given: dict[int, tuple[int | None, str | None, bool]] = {}
    for answer in answers:
        if answer.query_id is None:
            continue
        is_known = answer.question in given
        if is_known != answer.replayed or given.setdefault(answer.question, answer.said) != (
            answer.said
        ):
            return False
    return True


def _are_kept(lives: Sequence[Life]) -> bool:
    """Tell whether each process begins with the entries that the one before it ended with."""
    return all(
        after.entries[: len(before.entries)] == before.entries for before, after in pairwise(lives)
    )
