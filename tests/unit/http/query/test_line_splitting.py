"""Cutting streams into lines, and the channel that carries them."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from app.http.query.line_splitting import OVERLONG, Channel, LineCutter

PIECES = st.binary(max_size=12).map(lambda raw: raw.replace(b"\r", b"\n").replace(b"x", b" "))


@given(st.lists(PIECES, max_size=8))
def test_cuts_the_same_lines_however_the_bytes_come(pieces: list[bytes]) -> None:
    """Where the network breaks a stream makes no difference."""
    cutter = LineCutter(line_bytes_max=1000)
    lines = [line for piece in pieces for line in cutter.feed(piece)] + cutter.finish()
    whole = [line.strip() for line in b"".join(pieces).split(b"\n")]
    assert lines == [line for line in whole if line]


@given(st.lists(st.integers(1, 20), max_size=6), st.integers(1, 7))
def test_a_line_over_the_limit_stands_for_itself(lengths: list[int], step: int) -> None:
    """Each line over the limit gives one mark in its place, and no other line suffers."""
    body = b"\n".join(b"a" * length for length in lengths)
    cutter = LineCutter(line_bytes_max=10)
    lines = []
    for start in range(0, len(body), step):
        lines += cutter.feed(body[start : start + step])
    lines += cutter.finish()
    assert lines == [b"a" * length if length <= 10 else OVERLONG for length in lengths]


def test_the_channel_keeps_order_and_ends() -> None:
    """What was put before the end is taken, then nothing, again and again."""

    async def pass_through() -> list[list[str]]:
        channel: Channel[str] = Channel(bytes_max=10)
        for item in "abc":
            await channel.put(item)
        channel.close()
        return [await channel.take(count_max=2) for _ in range(4)]

    assert asyncio.run(pass_through()) == [["a", "b"], ["c"], [], []]


def test_the_channel_holds_a_putter_back() -> None:
    """A putter waits while the bytes inside reach the bound; one large item passes alone."""

    async def fill() -> tuple[bool, list[str]]:
        channel: Channel[str] = Channel(bytes_max=10)
        await channel.put("large" * 20)
        putter = asyncio.create_task(channel.put("next"))
        await asyncio.sleep(0.01)
        waited = not putter.done()
        taken = await channel.take(count_max=5)
        await putter
        return waited, taken + await channel.take(count_max=5)

    assert asyncio.run(fill()) == (True, ["large" * 20, "next"])


@given(st.lists(st.text(min_size=1, max_size=6), max_size=8), st.integers(1, 9))
def test_the_channel_takes_many_as_it_takes_each(items: list[str], bytes_max: int) -> None:
    """Put together, items come out in order, and never more of them than the bound lets in."""
    most = bytes_max + max(map(len, items), default=0)

    async def pass_through() -> list[str]:
        channel: Channel[str] = Channel(bytes_max=bytes_max)

        async def put() -> None:
            await channel.put_all(items)
            channel.close()

        putting, taken = asyncio.create_task(put()), list[str]()
        while some := await channel.take(count_max=100):
            assert sum(map(len, some)) < most
            taken += some
        await putting
        return taken

    assert asyncio.run(pass_through()) == items
