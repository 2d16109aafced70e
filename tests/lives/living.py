"""One life from an empty folder to all that came out of it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from tests.builders.ledger.postgresql_server import ENVIRONMENT, PostgresqlServer
from tests.lives.catalogue import POSTGRESQL, lives
from tests.lives.configurations import FEATURES, merged, toml_of
from tests.lives.people import people, write_paper_rows, write_source
from tests.lives.plays import played
from tests.lives.script import scripted
from tests.lives.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lives.catalogue import Life

UNEXPECTED = "unexpected error"


@dataclass(frozen=True)
class Lived:
    """What came out of a life.

    Attributes:
        name: the life's.
        items: names and bytes, in order.
        seconds: that it took.

    """

    name: str
    items: list[tuple[str, bytes]]
    seconds: float


def live(name: str) -> Lived:
    """Live one life by its name; an unexpected error is its last item."""
    life, started = lives()[name], time.monotonic()
    with (
        _without_settings(),
        scripted(name),
        _folder(name) as folder,
        _ledger(life, folder) as url,
    ):
        stage = Stage(folder, url)
        try:
            _write(life, stage)
            played(life, stage)
        except Exception as error:  # noqa: BLE001 -- it is recorded, and so compared
            stage.keep(UNEXPECTED, f"{type(error).__name__}: {error}".encode())
            traceback.print_exc(limit=-3)
    return Lived(name, stage.items, time.monotonic() - started)


def _write(life: Life, stage: Stage) -> None:
    """Write configuration and rows."""
    tables = merged(*life.changes)
    classes = (*tables["data"]["classes"],)
    if life.source == "paper":
        source = write_paper_rows(stage.folder)
    else:
        source = write_source(stage.folder, life.source, people(life.rule, classes))
    tables["data"] = {**source, **tables["data"], "features": FEATURES}
    tables["ledger"] = {"url": stage.url, **tables["ledger"]}
    stage.config.write_text(toml_of(tables), encoding="utf-8")


@contextmanager
def _folder(name: str) -> Iterator[Path]:
    """Yield an empty folder, always the same for a life: a ledger that moves tells where to.

    Whoever else lives that life at the same time waits, and what was left by one that was
    killed is taken away.
    """
    folder = Path(tempfile.gettempdir()) / f"conclave-life-{sha256(name.encode()).hexdigest()[:16]}"
    with folder.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _without_settings() -> Iterator[None]:
    """Let no setting of the environment into a life."""
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("CONCLAVE_")]:
            if name != ENVIRONMENT:
                del os.environ[name]
        yield


@contextmanager
def _ledger(life: Life, folder: Path) -> Iterator[str]:
    """Yield the address of an empty ledger, and drop it afterwards."""
    if life.database != POSTGRESQL:
        yield f"sqlite:///{folder / 'conclave.db'}"
        return
    from sqlalchemy.engine import make_url

    server = PostgresqlServer(make_url(os.environ[ENVIRONMENT]))
    address = server.create_database()
    try:
        yield address
    finally:
        with suppress(Exception):
            server.drop_database(address)
