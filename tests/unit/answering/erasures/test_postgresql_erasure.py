"""Erasure in PostgreSQL, by a server that owns nothing; its files are searched for the bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import psycopg
import pytest
from sqlalchemy.engine import make_url

from app.answering.generations.generations_answerer import LivingAnswerer
from app.errors import ConfigurationError
from app.ledger.database.database import grant_serving
from app.ledger.entries.generations import generations_of
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.release.generations.waiting_requests import Taken, corrections_of, take_down
from tests.builders.ledger.postgresql_server import OwnServer, own_server
from tests.builders.release.growing_persons import FIRST, SECOND, PersonsRelease, rows_about
from tests.builders.release.growing_release import GrowingRelease, vote_by_margin
from tests.builders.release.named_rows import NamedRelease, place_of, slots_of
from tests.builders.release.small_release import HIT, ask
from tests.unit.answering.erasures.test_erasures import forget, pass_tick

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long
_Release = TypeVar("_Release", bound=GrowingRelease)
UNLIKE_OTHERS = 0.1234567
"""Added to margins, so that the bytes of a row are found nowhere by chance."""
IN_THE_CLEAR = "ALTER TABLE private_state ALTER COLUMN body SET STORAGE EXTERNAL"


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    """Start a server whose files may be read here."""
    with own_server() as server:
        yield server


def prepared(server: OwnServer, folder: Path, kind: type[_Release]) -> tuple[_Release, str]:
    """Return a release that a role serves which owns nothing, and the owner's address.

    Its pieces are kept in the clear: what PostgreSQL has compressed no search would find.
    """
    owner = server.create_database()
    growing = kind(folder, ledger_url=owner)
    growing.small.ledger().close()
    role = f"serving_{make_url(owner).database}"
    server.run(f"CREATE ROLE {role} LOGIN")
    grant_serving(owner, role)
    with server.connect(owner) as connection:
        connection.execute(IN_THE_CLEAR)
    served = make_url(owner).set(username=role).render_as_string(hide_password=False)
    return replace(growing, ledger_url=served), owner


def files_with(server: OwnServer, marker: bytes) -> list[str]:
    """Return the files of all databases that hold some bytes; logs are named as not covered."""
    with server.connect() as connection:
        connection.execute("CHECKPOINT")
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    files = (each for each in Path(folder).rglob("*") if each.is_file())
    return [each.name for each in files if each.parent.name != "pg_wal" and _has(each, marker)]


def _has(file: Path, marker: bytes) -> bool:
    try:
        return marker in file.read_bytes()
    except FileNotFoundError:  # PostgreSQL has removed it
        return False


def test_no_file_holds_a_forgotten_record_once_the_table_is_written_anew(
    server: OwnServer, tmp_path: Path
) -> None:
    """They are there before, and after the tick until VACUUM FULL; the ledger verifies."""
    growing, owner = prepared(server, tmp_path, NamedRelease)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    row = slots_of(ledger).values[place_of(ledger, "a1")]
    marker = np.ascontiguousarray(row, dtype="<f8").tobytes()[:8]
    assert files_with(server, marker)
    forget(ledger, "a1")
    pass_tick(growing, answerer, ticker)
    assert files_with(server, marker)
    with server.connect(owner) as connection:
        connection.execute("VACUUM FULL private_state")
    assert not files_with(server, marker)
    verify(ledger)
    ledger.close()


def test_persons_are_corrected_forgotten_and_kept_out(server: OwnServer, tmp_path: Path) -> None:
    """All rows of one go, later rows of another come in, and a forgotten one does not come back."""
    growing, owner = prepared(server, tmp_path, PersonsRelease)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    corrected = rows_about(ledger, {"a4": 3, "a7": 2}, shift=UNLIKE_OTHERS)
    assert take_down(ledger, corrections_of(corrected)) == Taken(2, ())
    appended = growing.append_persons(ledger, {**SECOND, "a9": 2})
    assert (appended.number, appended.further_count) == (2, 1)
    pass_tick(growing, answerer, ticker)
    own = slots_of(ledger).contents(place_of(ledger, "a4")).values
    assert own.shape == (3, corrected.values.shape[1])
    marker = np.ascontiguousarray(own[0], dtype="<f8").tobytes()[:8]
    assert files_with(server, marker)
    assert forget(ledger, "a4", "nobody") == Taken(1, (2,))
    pass_tick(growing, answerer, ticker)
    with server.connect(owner) as connection:
        connection.execute("VACUUM FULL private_state")
    assert not files_with(server, marker)
    kept = slots_of(ledger)
    row_counts = {name: len(kept.contents(place_of(ledger, name)).labels) for name in ("a7", "a9")}
    assert row_counts == {"a7": 2, "a9": FIRST["a9"] + 2}
    verify(ledger)
    ledger.close()
    again = growing.open()  # a restart, of which the source knows nothing
    assert slots_of(again.ledger).to_bytes() == kept.to_bytes()
    with pytest.raises(ConfigurationError, match="names a person who was forgotten"):
        growing.append_persons(again.ledger, {"c1": 1, "a4": 1})
    again.ledger.close()


def test_two_servers_forget_the_same_persons(server: OwnServer, tmp_path: Path) -> None:
    """One makes the tick, the other votes with what it left; of the retired nothing is used."""
    growing, _ = prepared(server, tmp_path, PersonsRelease)
    one, other = growing.answerer(), growing.answerer()
    ledger = one.release.ledger
    assert growing.append(other.release.ledger) == 2
    assert forget(other.release.ledger, "a1", "b2") == Taken(2, ())
    ticker = growing.ticker(ledger)
    for _ in range(2):
        pass_tick(growing, one, ticker)
    assert other.follow()
    for number in (1, 2):
        assert int((~slots_of(ledger, number).is_filled).sum()) == 1
        learners = other.living.private_fitted[number][1].to_bytes()
        assert learners == slots_of(ledger, number).ensemble
    vote_by_margin(other.living)
    other._noise = ScriptedNoise([HIT, HIT])
    other.answer_batch([ask(1), ask(2)])
    assert one.follow()
    known = generations_of(one.release.state.generations)
    assert [each.standing for each in known.all] == ["retired", "retired"]
    appended = growing.append_persons(ledger, {"a3": 2, **{f"c{it}": 1 for it in range(30)}})
    assert (appended.number, appended.further_count, appended.unused_count) == (3, 0, 1)
    verify(ledger)
    other.release.ledger.close()
    ledger.close()


def test_a_server_forgets_pieces_of_generations_and_nothing_else(
    server: OwnServer, tmp_path: Path
) -> None:
    """Neither another piece, nor without the grant, nor in a function that was altered."""
    growing, owner = prepared(server, tmp_path, NamedRelease)
    growing.open().ledger.close()
    served = growing.ledger_url
    with server.connect(served) as connection:
        for name in ("release-secret", "forgotten-00000002", "x-slots-1-1"):
            with pytest.raises(psycopg.Error, match="rows are never changed"):
                connection.execute("SELECT conclave_forget(1::smallint, %s)", ([name],))
        with pytest.raises(psycopg.Error, match="permission denied"):
            connection.execute("DELETE FROM private_state")
    other = f"other_{make_url(owner).database}"
    server.run(f"CREATE ROLE {other} LOGIN")
    stranger = make_url(owner).set(username=other).render_as_string(hide_password=False)
    with (
        server.connect(stranger) as connection,
        pytest.raises(psycopg.Error, match="permission denied"),
    ):
        connection.execute("SELECT conclave_forget(1::smallint, ARRAY['slots-1-1'])")
    with server.connect(owner) as connection:
        connection.execute("ALTER FUNCTION conclave_forget SECURITY INVOKER")
    ledger = open_ledger(owner, create=False)
    with pytest.raises(Exception, match="lost the function conclave_forget"):
        verify(ledger)
    ledger.close()
