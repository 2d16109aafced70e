"""Releases of an audit over HTTP: what is run, what is asked, and how they fail."""

from __future__ import annotations

import asyncio
import os
import socket
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from app.auditing.hypothesis_draws import ROWS_OF_A_PERSON
from app.auditing.transcripts.http_audit import Claim
from app.auditing.transcripts.reply_checks import COUNTED
from app.cli.audit.audited_releases import audit_releases
from app.cli.audit.neighbours import (
    ABOVE,
    BELOW,
    FEATURE,
    LABEL,
    WHO,
    Neighbours,
    audited_claim,
    neighbours,
    rows_text,
    served_settings,
)
from app.cli.loopback_client import Reply, connected
from app.errors import ConfigurationError, InvariantError
from app.settings.settings import Settings
from app.settings.toml_and_environment import with_placeholders
from tests.audit.planted.planted_servers import no_votes

SHARES = {"relabel": Decimal("0.2"), "answers": Decimal("0.5"), "classifier": Decimal("0.2")}


def settings(**tables: dict[str, object]) -> Settings:
    """Return settings whose rows exist nowhere."""
    given = {
        "data": {"classes": ["no", "yes"]},
        "privacy": {"epsilon": Decimal(2), "delta": Decimal("0.01"), "shares": SHARES},
        "ledger": {"url": "sqlite:///nowhere.db"},
        **tables,
    }
    return Settings.read(with_placeholders(given))


def test_neighbours_are_made_for_the_mechanism() -> None:
    """The second pair is where a hit has an even chance, the third where there is hardly one."""
    flip, move, relabelled = neighbours(settings())
    assert (flip.votes, len(flip.rows[0])) == (4, 4)
    assert 4 < move.votes < relabelled.votes
    assert move.votes == len(move.rows[0]) == len(move.rows[1])
    assert set(move.rows[0]) == {(ABOVE, 1)}
    assert set(move.rows[1]) == {(ABOVE, 1), (BELOW, 0)}
    assert {number for side in relabelled.rows for number, _ in side} == {ABOVE}


def test_without_relabelling_nobody_asks_about_it() -> None:
    """Two pairs are left."""
    privacy = {"epsilon": Decimal(2), "shares": {**SHARES, "relabel": 0}}
    assert len(neighbours(settings(privacy=privacy))) == 2


def test_data_sets_that_differ_in_more_are_no_neighbours() -> None:
    """Two records that differ are refused."""
    with pytest.raises(InvariantError, match="one record"):
        Neighbours("two", 2, (((0.1, 0), (0.1, 0)), ((0.2, 0), (0.2, 0))), 1)


@pytest.mark.parametrize(
    ("after", "epsilon"), [("halt", "1.4"), ("student", "1.4"), ("classifier", "1.8")]
)
def test_the_claim_is_what_may_be_drawn(after: str, epsilon: str) -> None:
    """The classifier's share counts where it may follow, and the statistics' never."""
    shares = {**SHARES, "statistics": Decimal("0.1")}
    privacy = {"epsilon": Decimal(2), "delta": Decimal("0.01"), "shares": shares}
    claim = audited_claim(settings(privacy=privacy, answers={"after": after}))
    assert float(claim.epsilon) == pytest.approx(float(epsilon))
    assert float(claim.delta) == pytest.approx(0.009, rel=1e-5)
    assert isinstance(claim, Claim)


def test_a_release_keeps_the_promise_and_has_rows_of_its_own(tmp_path: Path) -> None:
    """Privacy, classes and answers are the operator's; rows and ledger lie in the folder."""
    given = settings(answers={"cutoff": 7, "unstable": "coin"})
    served = served_settings(given, neighbours(given)[0], tmp_path)
    assert served.privacy == given.privacy.model_copy(update={"accounting": given.accounting})
    assert served.data.classes == given.data.classes
    assert (served.answers.cutoff, served.answers.unstable) == (7, "coin")
    assert served.source == str(tmp_path / "rows.csv")
    assert str(tmp_path) in served.ledger_url


@pytest.mark.parametrize(
    ("given", "answers"),
    [({}, "0.9"), ({"answers": "0.7", "classifier": "0.3"}, "0.7"), ({"classifier": "0.1"}, "0.9")],
)
def test_a_learner_s_delta_is_left_out(tmp_path: Path, given: dict[str, str], answers: str) -> None:
    """A release that draws an exact rule instead has no delta for it, and the answers no more."""
    shares = {name: Decimal(share) for name, share in given.items()}
    privacy = {"epsilon": Decimal(2), "delta": Decimal("1e-6"), "shares": SHARES}
    asked = settings(privacy=privacy | {"delta_shares": shares}, classifier={"learner": "linear"})
    served = served_settings(asked, neighbours(asked)[0], tmp_path)
    assert served.delta_share("answers") == Fraction(answers)
    assert served.delta_share("classifier") == 0
    assert served.accounting == asked.accounting == "joint"


def test_rows_are_written_as_a_csv() -> None:
    """Classes are named as they are, with whatever a CSV must quote."""
    pair = Neighbours("any", 2, (((0.5, 0), (0.25, 1)), ((0.5, 1), (0.25, 1))), 1, copies=(1, 3))
    one, other = (rows_text(pair, side, ("a,b", "c")).splitlines() for side in (0, 1))
    assert one == [f"{FEATURE},{LABEL},{WHO}", '0.5,"a,b",0', "0.25,c,1"]
    assert other == [one[0], *["0.5,c,0"] * 3, "0.25,c,1"]


def test_persons_differ_in_fifty_rows(tmp_path: Path) -> None:
    """In every pair, on a side or on both, where persons are the unit; else in one."""
    named = settings(data={"classes": ["no", "yes"], "person": "who"})
    pairs = neighbours(named)
    assert [max(pair.copies) for pair in pairs] == [ROWS_OF_A_PERSON] * 3
    assert [pair.rows for pair in pairs] == [pair.rows for pair in neighbours(settings())]
    assert {pair.copies for pair in neighbours(settings())} == {(1, 1)}
    assert served_settings(named, pairs[0], tmp_path).data.person == WHO
    assert served_settings(settings(), pairs[0], tmp_path).data.person is None


NO_NUMBER = float("nan")
IMPOSSIBLE = Neighbours("no number", 5, (((NO_NUMBER, 0),), ((0.5, 1),)), 1)


@pytest.mark.parametrize(
    ("runs", "processes"), [(4, 1), pytest.param(200, 2, marks=pytest.mark.long)]
)
def test_a_release_that_cannot_open_says_why(runs: int, processes: int) -> None:
    """The line names the key, from another process too, and nothing hangs."""
    with pytest.raises(ConfigurationError, match=r"data\.source"):
        audit_releases(settings(), runs=runs, processes=processes, pairs=[IMPOSSIBLE])


def test_a_release_that_stops_breaks_its_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that contains a failure answers nothing, counts nothing, and is heard so."""
    no_votes(monkeypatch)
    given = settings()
    report = audit_releases(given, runs=4, processes=1, pairs=neighbours(given)[:1])
    assert report is not None
    assert report.broken[COUNTED] == 4
    assert not report.holds


def test_a_head_that_is_noted_late_breaks_no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is written into a release's folder while it is removed, the runs are kept."""
    remove = os.rmdir

    def write_first(path: str, *, dir_fd: int | None = None) -> None:
        Path(path, ".late").touch()
        monkeypatch.setattr(os, "rmdir", remove)
        remove(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", write_first)
    given = settings()
    report = audit_releases(given, runs=4, processes=1, pairs=neighbours(given)[:1])
    assert report is not None
    assert report.holds
    assert os.rmdir is remove


async def reply_of(sent: bytes) -> Reply:
    """Return what the client makes of bytes that a server sends it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.close()

    listening = socket.create_server(("127.0.0.1", 0))
    server = await asyncio.start_server(serve, sock=listening)
    async with server, connected(listening) as client:
        return await client.send("GET", "/x")


def test_a_chunked_reply_is_put_together() -> None:
    """Status, headers in order and the body without its coding."""
    head = b"HTTP/1.1 410 Gone\r\nX-One: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    reply = asyncio.run(reply_of(head + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"))
    assert (reply.status, reply.body) == (410, b"abc")
    assert reply.headers[0] == ("X-One", "1")
    assert reply.header("x-one") == "1"
    assert reply.header("absent") == ""


def test_a_reply_that_ends_early_is_an_error() -> None:
    """A connection that is gone within a reply is no reply."""
    with pytest.raises(InvariantError, match="within a reply"):
        asyncio.run(reply_of(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"))
