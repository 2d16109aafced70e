"""From what was received to readings by channel: nothing of a reply is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH_MAX = 32


def readings_of(document: object, channel: str) -> dict[str, str]:
    """Return every leaf of a decoded document, and how long every list and text is.

    Args:
        document: of mappings, sequences, texts, numbers, truth values and None.
        channel: where it was received, which begins the name of each reading.

    """
    return dict(_leaves(document, channel, DEPTH_MAX))


def _leaves(document: object, channel: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield readings; what is nested too deeply is one of them, whole."""
    if isinstance(document, Mapping) and depth:
        yield f"{channel}, members", repr(list(document))
        for name, member in document.items():
            yield from _leaves(member, f"{channel}.{name}", depth - 1)
    elif isinstance(document, Sequence) and not isinstance(document, str) and depth:
        yield f"{channel}, length", repr(len(document))
        for index, member in enumerate(document):
            yield from _leaves(member, f"{channel}[{index}]", depth - 1)
    else:
        yield channel, repr(document)
        if isinstance(document, str):
            yield f"{channel}, length", repr(len(document))
