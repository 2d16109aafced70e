"""The short stored bodies of entries of answers, which lack what the answers' own rows hold.

The row of such an entry says how many answers it has, the number of the first, and which set of
generations (batches of rows) voted, if the kind of entry says so. The digests, labels and scores
are in the groups of its answers, from which whoever reads the entry makes its body again. The hash
of the entry covers the whole body, so that it also covers the groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from app.ledger.entries.chain import INTEGER_MAX
from app.ledger.entries.entry_kinds import AnswersReleased, AnswersReleased2, ScoresReleased

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Columns: TypeAlias = "Mapping[str, Sequence[object]]"
"""The values of an entry's answers by the name of the entry's field, in the order of the answers.

The names are ``digests``, ``labels`` and ``stable``, and for scores also ``precisions``, ``bins``,
``shifted`` and ``units``.
"""

_Count = Annotated[int, Meta(ge=1, le=INTEGER_MAX)]


class ShortBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The contents of a short body.

    Attributes:
        answers: the number of answers of the entry.
        first_query_id: the number of the first answer.
        active: a number that identifies the set of generations that voted; None in a release
            without generations.

    """

    answers: _Count
    first_query_id: _Count
    active: _Count | None = None


_HAS_ACTIVE: Final = {
    (event_type.KIND, event_type.VERSION): event_type is AnswersReleased2
    for event_type in (AnswersReleased, AnswersReleased2, ScoresReleased)
}
"""Whether an entry has the field ``active``, for each kind and version with answers."""

_decode = msgspec.json.Decoder(ShortBody, strict=True).decode
_encode = msgspec.json.Encoder(order="sorted").encode


def short_body(event: AnswersReleased | ScoresReleased) -> str:
    """Return what is stored as the body of an entry whose answers are in groups."""
    active = event.active if isinstance(event, AnswersReleased2) else None
    return _encode(ShortBody(len(event.digests), event.first_query_id, active)).decode()


def read_short_body(kind: str, version: int, body: str) -> ShortBody | None:
    """Return the contents of a stored body if it is short, otherwise None.

    A body in any other form is taken for a whole one, and no kind of entry allows it then.
    """
    has_active = _HAS_ACTIVE.get((kind, version))
    if has_active is None:
        return None
    try:
        short = _decode(body)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    is_canonical = _encode(short).decode() == body
    return short if is_canonical and (short.active is not None) == has_active else None


def whole_body(short: ShortBody, columns: Columns) -> str:
    """Return the canonical JSON text of an entry's body, made of its answers.

    Args:
        short: the stored body.
        columns: the values of the entry's answers: whole numbers, booleans, None, and digests in
            hexadecimal digits.

    """
    active = {} if short.active is None else {"active": short.active}
    fields = {"first_query_id": short.first_query_id, **active, **columns}
    return _encode(fields).decode()  # canonical, since no text in it needs an escape
