"""A small release, and what brings it from each phase to the next; asked as clients ask."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx

from tests.builders.server.http_release import agreed, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LIMIT, CUTOFF = 600, 5
# 0.72 of epsilon for the answers: an agreed query is a hit with probability below 1e-9, and
# a split one is answered with 4e-8.
CHANGES: Mapping[str, Mapping[str, str]] = {
    "privacy": {"epsilon": "12"},
    "shares": {"relabel": "0.3", "answers": "0.06", "classifier": "0.6"},
    "answers": {"queries": str(LIMIT), "cutoff": str(CUTOFF)},
}
NDJSON = {"Content-Type": "application/x-ndjson"}
SECONDS_MAX = 60


def ask(
    address: str, vectors: Iterable[object], *, key: str | None = None
) -> list[dict[str, object]]:
    """Stream vectors to a server, with a key where it has some, and return the replies."""
    body = "".join(json.dumps({"features": vector}) + "\n" for vector in vectors)
    headers = NDJSON if key is None else NDJSON | {"Authorization": f"Bearer {key}"}
    reply = httpx.post(
        f"{address}/query/stream", content=body, headers=headers, timeout=SECONDS_MAX
    )
    assert reply.status_code == httpx.codes.OK
    return [json.loads(line) for line in reply.text.splitlines()]


def ask_agreed(address: str, count: int, *, first: int = 0, key: str | None = None) -> None:
    """Ask what the learners agree on."""
    replies = ask(address, [agreed(number) for number in range(first, first + count)], key=key)
    assert all(reply.get("stable", True) for reply in replies)


def ask_split(address: str, count: int, *, first: int = 0) -> None:
    """Ask what the learners are split about."""
    replies = ask(address, [split(number) for number in range(first, first + count)])
    assert not any(reply.get("stable", False) for reply in replies)


def _fresh(address: str) -> None:
    del address


def _ensemble(address: str) -> None:
    ask_agreed(address, 20)
    ask_split(address, 1)
    ask_agreed(address, 30, first=20)


def _near_the_cutoff(address: str) -> None:
    ask_split(address, CUTOFF - 2, first=1)


def _halted(address: str) -> None:
    ask_split(address, 2, first=CUTOFF)


def _classifier(address: str) -> None:
    ask_agreed(address, LIMIT - 51 + 3, first=50)


REACH: Mapping[str, Callable[[str], None]] = {
    "fresh": _fresh,
    "ensemble": _ensemble,
    "near the cutoff": _near_the_cutoff,
    "halted": _halted,
    "classifier": _classifier,
}
LIVES = (("fresh", "ensemble", "near the cutoff", "halted"), ("ensemble", "classifier"))
"""What two servers go through, one after the other; each phase is looked at once."""
