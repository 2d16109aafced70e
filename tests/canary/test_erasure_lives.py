"""Two lives that differ in who was erased: every public byte of the application is the same.

Both have the same rows, noise, clock and requests.  What is compared is every reply with its
headers, of every route and page, and every line of the log; heads, hashes and digests are masked,
and what a repetition of the very same life would not repeat either.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
import time
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from app.answering.generations.tick_clock import log
from app.cli.logs import configure_logs
from app.http.dashboard.page import page_responses
from app.http.routes import PATHS
from app.main import append_from_settings, change_from_settings
from app.noise.system import SystemNoise
from app.release.generations import row_changes, tick
from app.release.terms.answer_time_padding import wait_for_multiple
from tests.builders.server.serving import Served
from tests.http.end_to_end.test_generations import AGREED, HOUR, SPLIT, Life, wait_for
from tests.lives.masks import masked
from tests.lives.script import scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import httpx

ERASED = 300
ERASED_NOW = 40
ROUNDING = 1e-6
TICKS = 4  # at the opening, two by the clock, and one at once
STREAM = "/budget/events"  # which never ends
POSTED = {
    "/query": {"features": ["far"]},
    "/statistics": {"hypotheses": []},
    "/invocations": {"dataframe_split": {"columns": ["a"], "data": [[0.9]]}},
}
OWN = (
    (rb"[0-9a-f]{64}", b"<hash>"),
    (rb'"request_id": ?"[^"]+"', b"<request>"),
    (rb"(?m)^x-request-id: .*$", b"x-request-id: <request>"),
    (rb'"bytes_free": ?\d+', b'"bytes_free":<room>'),
)


@dataclass
class ErasingLife(Life):
    """A life of records with identifiers, in which some are erased or none.

    Attributes:
        erases: whether they are.

    """

    erases: bool = False

    def __post_init__(self) -> None:
        """Write the configuration and the first rows."""
        super().__post_init__()
        text = self.config.read_text(encoding="utf-8")
        self.config.write_text(text.replace("[data]\n", '[data]\nid = "record"\n'), "utf-8")

    def write(self, name: str, *, seed: int) -> str:
        """Write rows with identifiers to a file, whose path is returned."""
        path = super().write(name, seed=seed)
        file = self.folder / f"{name}.csv"
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        lines = [f"record,{header}", *(f"{name}-{row},{each}" for row, each in enumerate(rows))]
        file.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return path

    def erase(self, name: str) -> None:
        """Erase the first records of a file, or none."""
        if self.erases:
            asked = [f"{name}-{row}" for row in range(ERASED)]
            told = change_from_settings(
                self.settings, identifiers=asked, noise=SystemNoise(), clock=lambda: self.now
            )
            assert (told.taken.count, told.taken.unknown) == (ERASED, ())

    def erase_now(self, served: Served) -> None:
        """Erase further records of the first file at once, or some that nobody knows."""
        before = served.get("/ledger/head").json()["sequence"]
        start = ERASED if self.erases else -ERASED_NOW
        asked = [f"first-{row}" for row in range(start, start + ERASED_NOW)]
        told = change_from_settings(
            self.settings, identifiers=asked, now=True, noise=SystemNoise(), clock=lambda: self.now
        )
        assert told.taken.count == (ERASED_NOW if self.erases else 0)
        assert told.after is not None
        assert told.after.sequence == before + 1
        served.run(asyncio.wait_for(_ticked(served, before), 20))

    def pass_tick(self, served: Served, *standing: str) -> None:
        """Let an hour pass, and wait until its tick is made and generations stand so."""
        before = served.get("/ledger/head").json()["sequence"]
        served.run(_prepared(served))
        self.now += HOUR
        served.run(asyncio.wait_for(_ticked(served, before), 20))
        wait_for(served, *standing)

    def told(self) -> Iterator[bytes]:
        """Live, and yield every reply."""
        with self.serve() as served:
            yield _ask(served, [self.near(SPLIT)])
            append_from_settings(
                self.settings,
                self.write("second", seed=2),
                noise=SystemNoise(),
                clock=lambda: self.now,
            )
            wait_for(served, "active", "waiting")
            self.erase("first")
            self.erase("second")
            yield from _surfaces(served)
            self.pass_tick(served, "active", "waiting")
            yield _ask(served, [self.near(AGREED)])
            self.pass_tick(served, "active", "active")
            yield _ask(served, [self.near(AGREED)])
            self.erase_now(served)
            yield _ask(served, [self.near(AGREED)])
            yield from _surfaces(served)
        with self.serve() as served:
            yield _ask(served, [self.near(AGREED)])
            yield from _surfaces(served)


async def _prepared(served: Served) -> None:
    """Wait until everything that waits is fitted, as it is long before a tick of an hour."""
    clock = served.server.slot.service._clock
    assert clock is not None
    ticker, release = clock._ticker, clock._answerer.release
    while True:
        if not (ticker.awaits_fit(release.state) or ticker.awaits_change(release.state)):
            return
        await asyncio.sleep(0.02)


async def _ticked(served: Served, before: int) -> None:
    while True:
        if served.server.slot.service._release.state.head.sequence > before:
            return
        await asyncio.sleep(0.02)


def _ask(served: Served, vectors: list[object]) -> bytes:
    """Ask alone and in a stream, new and repeated, well and badly."""
    vectors = [*vectors, [AGREED]]
    replies = [served.query(vectors[0]), served.query(vectors[0]), served.query(["far"])]
    lines = served.stream([*vectors, "nothing"])
    return b"".join(map(_bytes_of, replies)) + repr(lines).encode()


def _surfaces(served: Served) -> Iterator[bytes]:
    """Ask for every route and page, posted where it takes a body."""
    for path in (*PATHS, *page_responses(), "/openapi.json", "/nowhere"):
        where = path.replace("{name}", "growing")
        if where == STREAM:
            continue
        body = POSTED.get(where)
        yield path.encode()
        yield _bytes_of(served.get(where) if body is None else served.post(where, body))
    yield _bytes_of(served.get("/ledger?after=0&limit=1000"))


def _bytes_of(reply: httpx.Response) -> bytes:
    """Return a reply as it is compared: its length is that of what is left after masking."""
    length = str(len(_public(reply.content)))
    headers = {**reply.headers, "content-length": length}
    lines = "".join(f"{name}: {text}\n" for name, text in headers.items())
    return f"{reply.status_code}\n{lines}\n".encode() + reply.content


def _public(told: bytes) -> bytes:
    told = masked(told, {})
    for pattern, mask in OWN:
        told = re.sub(pattern, mask, told)
    return told


def lived(folder: Path, capfd: pytest.CaptureFixture[str], *, erases: bool) -> list[bytes]:
    """Return all that one life sends out, and the lines of its log."""
    folder.mkdir()
    capfd.readouterr()
    with scripted("two lives"):
        configure_logs()
        life = ErasingLife(folder, erases=erases)
        replies = [_public(each) for each in life.told()]
    said = _public(capfd.readouterr().err.encode())
    # Lines of commits wait for each other, so that how they lie among others is a matter of chance.
    return [*replies, *sorted(said.replace(str(folder).encode(), b"<folder>").splitlines())]


def _timed(took: list[tuple[float, float]]) -> Callable[..., None]:
    """Return the wait before a tick's commit, which notes the seconds since the tick began."""

    def wait(padding_seconds: float, *, started: float) -> None:
        worked = time.monotonic() - started
        wait_for_multiple(padding_seconds, started=started)
        took.append((worked / padding_seconds, (time.monotonic() - started) / padding_seconds))

    return wait


def test_nothing_public_tells_of_an_erasure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """600 records of two generations are erased in one life, before a join, and 40 at once."""
    # Every tick, by the clock or at once, is committed after whole grains.  How long after them is
    # a matter of the machine, so that the figures are printed, and only their floor is a claim.
    took: list[tuple[float, float]] = []
    monkeypatch.setattr(tick, "wait_for_multiple", _timed(took))
    lives, ticks = [], []
    for erases in (False, True):
        lives.append(lived(tmp_path / str(erases), capfd, erases=erases))
        ticks.append(took.copy())
        took.clear()
    kept, erased = lives
    assert len(kept) > 3 * len(PATHS)
    assert kept == erased
    assert len(ticks[0]) == len(ticks[1]) == TICKS
    for worked, committed in chain(*ticks):
        assert committed >= max(1, math.ceil(worked)) - ROUNDING
    sys.stdout.write(f"grains of .1 s, worked and committed: {ticks}\n")


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    def told(*given: Any, **named: Any) -> Any:
        changed = original(*given, **named)
        if changed.erased:
            log.info("records_erased", count=len(changed.erased))
        return changed

    return told


@pytest.mark.long
def test_a_line_of_the_log_that_tells_is_seen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison has power: a count in the log is a difference."""
    monkeypatch.setattr(tick, "prepare_changes", _telling(row_changes.prepare_changes))
    kept, erased = (lived(tmp_path / str(it), capfd, erases=it) for it in (False, True))
    assert kept != erased
