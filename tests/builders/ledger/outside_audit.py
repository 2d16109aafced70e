"""What a stranger finds of generations in the public entries alone, without the project's fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def hits_between(entries: Iterable[Mapping[str, Any]]) -> dict[int, tuple[int, int]]:
    """Return the hits between join and retirement of each generation, and its T.

    Args:
        entries: as ``GET /ledger`` gives them, from the first.

    """
    voting: set[int] = set()
    hits: dict[int, int] = {}
    cutoffs: dict[int, int] = {}
    for entry in entries:
        body, kind = entry["body"], entry["kind"]
        if kind == "GenerationAppended":
            cutoffs[body["number"]], hits[body["number"]] = body["cutoff"], 0
        elif kind == "GenerationsJoined":
            voting |= set(body["numbers"])
        elif kind == "GenerationRetired":
            voting -= {body["number"]}
        elif kind == "AnswersReleased":
            for number in voting:
                hits[number] += body["stable"].count(False)
    return {number: (hits[number], cutoffs[number]) for number in cutoffs}


def faults_in(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the entries of a release that takes generations; nothing else."""
    entries = list(entries)
    found = [
        f"generation {number}: {hits} hits and T {cutoff}"
        for number, (hits, cutoff) in hits_between(entries).items()
        if hits > cutoff
    ]
    joins_at: dict[int, int] = {}
    voted: set[int] = set()
    published: list[int] = []
    tick, period, active = 0, 0, 0
    for entry in entries:
        body, kind = entry["body"], entry["kind"]
        if kind == "GenerationAppended":
            joins_at[body["number"]] = body["joins_at"]
        elif kind == "SlotsChanged":
            found += [] if body["tick"] == tick + 1 else [f"no tick {tick + 1}"]
            tick, period, active = body["tick"], body["period"], active + 1
        elif kind == "GenerationsJoined":
            voted |= set(body["numbers"])
            early = [number for number in body["numbers"] if joins_at[number] > period]
            found += [f"generation {number} joined before its tick" for number in early]
        elif kind == "AnswersReleased" and body["active"] != active:
            found.append(f"answers of set {body['active']} where {active} votes")
        elif kind == "ClassifierPublished":
            number = body["number"]
            found += [f"classifier of {number}, which has joined"] if number in voted else []
            found += [f"classifier of {number} again"] if number in published else []
            published.append(number)
        if kind in ("GenerationsJoined", "GenerationRetired"):
            found += [] if body["active"] == active + 1 else [f"set {body['active']}"]
            active = body["active"]
    return found
