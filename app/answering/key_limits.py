"""Limits of a key: how many of a release's answers one client may take.

They share the answers out fairly and promise nobody anything: what a release promises
holds whoever asks.  Only fresh answers of the ensemble count, since only they use up what
all clients share.  A limit is public, and what it is held against are answers that the
key was given, so that a refusal tells its client nothing that it has not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import KeyLimitError

if TYPE_CHECKING:
    from app.answering.types import Asker
    from app.ledger.key_counts import KeyCount

ANSWERS_USED: Final = (
    "this key has had its {limit} fresh answers; nothing was charged, recorded vectors still "
    "get their answers, and the operator can raise the limit"
)
UNSTABLE_USED: Final = (
    "this key has had its {limit} unstable answers; nothing was charged, recorded vectors "
    "still get their answers, and the operator can raise the limit"
)


def key_limit_refusal(asker: Asker, given: KeyCount) -> KeyLimitError | None:
    """Return why a key gets no further fresh answer, or None where it does.

    The answer that reaches a limit is still given, as the T-th unstable one is.
    """
    if asker.answer_limit is not None and given.answered >= asker.answer_limit:
        return KeyLimitError(ANSWERS_USED.format(limit=asker.answer_limit))
    if asker.unstable_limit is not None and given.unstable >= asker.unstable_limit:
        return KeyLimitError(UNSTABLE_USED.format(limit=asker.unstable_limit))
    return None
