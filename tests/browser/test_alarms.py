"""Every alarm is reached by a real release, and what the operator alone sees by real files.

Those of a draining budget, of a forecast, of a halt with a reserved share and of a hopeless
release are reached in ``test_phases.py`` and ``test_live.py``.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from app.http.access.keys import hash_of
from tests.browser.chromium import PHONE, Dashboard, dashboard
from tests.browser.phases import CUTOFF, SECONDS_MAX, ask_agreed, ask_split
from tests.builders.ledger.old_ledgers import HISTORIES
from tests.builders.ledger.releases import tamper
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease
from tests.builders.server.nursery import started
from tests.builders.server.server_process import ROOT, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

# 40 answers and 3 unstable ones; nothing follows, and nothing is set aside.
ENDS = {
    "shares": {"relabel": "0.3", "answers": "0.1", "classifier": "0"},
    "answers": {"after": '"halt"'},
}
LEFT, HALTED = "Halted, with answers left", "Halted: new queries are refused"
# Of large figures that are wider than what they stand in.
BEYOND_THEIR_TILES = (
    "[...document.querySelectorAll('.large')].filter((e) => e.scrollWidth > e.clientWidth).length"
)
TWO_FRAMES = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
)
RED = "rgb(163, 23, 42)"
COLOUR_OF_THE_PHASE = "getComputedStyle(document.querySelector('#stages [aria-current]')).color"
# Learners of which each fails on a vector that is near the upper bound, and on no row.
FAILING = {
    "learner": {
        "estimator": '"tests.builders.learners.plain_estimators:Starved"',
        "params": '{ at = "predict" }',
    },
    "shares": {"relabel": "0", "answers": "0.4", "classifier": "0.6"},
    "answers": {"ensemble": "700", "reply_padding_milliseconds": "0", "query_seconds_max": "120"},
}
FAILED_ON = [99, "common"]
# 40 answers, and two shares that are still set aside once none is left: in a joint account the
# table of statistics waits for the classifier.
SET_ASIDE = {
    "privacy": {"accounting": '"joint"'},
    "shares": {"relabel": "0.3", "answers": "0.1", "classifier": "0.3", "statistics": "0.3"},
    "answers": {"after": '"halt"'},
}
# As e54552f opened it, which read each column by the types of all its values.
READ_BY_COLUMNS = """\
[release]
name = "typed"
[data]
source = "sqlite:///rows.db"
query = "select * from people"
label = "answer"
classes = ["no", "yes"]
missing = ["99.0"]
[[data.features]]
name = "margin"
kind = "numeric"
bounds = [0, 100]
thresholds = [50]
[[data.features]]
name = "group"
kind = "categorical"
categories = ["a", "b"]
[hypotheses]
class = "trees"
depth = 1
[privacy]
epsilon = 20
delta = 1e-6
[privacy.shares]
relabel = 0
answers = 0.9
classifier = 0.1
[answers]
queries = 40
cutoff = 3
ensemble = 100
[server]
port = 0
"""
LIMIT_OF_A_KEY = 3
OPERATORS = ("/keys/usage", "/ledger/storage")
KEYS = {"desk": "admin", "wall": "read", "web": "query"}


@dataclass(frozen=True)
class Notice:
    """A notice as it was seen, and the tile that it is about.

    Attributes:
        level: caution or alarm.
        text: all of it.
        tile: the level of the tile of answers, and of that of unstable ones.
        colour: of the number of unstable answers.

    """

    level: str | None
    text: str
    tile: tuple[str | None, str | None]
    colour: str


def notice(page: Dashboard, title: str) -> Notice:
    """Wait for a notice, and look at it."""
    page.shows("#alert", title)
    tiles = [page.find(f"#{name}-tile").get_attribute("data-level") for name in TILES]
    colour = page.evaluate("getComputedStyle(document.getElementById('unstable-left')).color")
    level = page.find("#alert .notice").get_attribute("data-level")
    return Notice(level, page.text("#alert"), (tiles[0], tiles[1]), colour)


TILES = ("answers", "unstable")


@pytest.fixture(scope="module")
def ending(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Notice]:
    """Ask a small release until it halts, and look at each notice on the way."""
    release = SmallRelease(tmp_path_factory.mktemp("ending"), ENDS).write()
    with serving(release.config) as server, dashboard(browser) as page:
        page.open(server.address)
        ask_agreed(server.address, 32)
        answers = notice(page, "8 answers left")
        ask_split(server.address, 2)
        unstable = notice(page, "1 unstable answer left")
        ask_split(server.address, 1, first=2)
        halted = notice(page, HALTED)
        assert page.page.title() == "Halted: members · Conclave"
        assert page.said == []
    return {"answers": answers, "unstable": unstable, "halted": halted}


def test_few_answers_left_are_a_caution(ending: dict[str, Notice]) -> None:
    """A fifth of the limit is left: the notice says so, and what comes then."""
    seen = ending["answers"]
    assert (seen.level, seen.tile) == ("caution", ("caution", "calm"))
    assert "Then new queries are refused." in seen.text


def test_one_unstable_answer_left_is_a_caution(ending: dict[str, Notice]) -> None:
    """The last unit of the cutoff comes before the last answers."""
    seen = ending["unstable"]
    assert (seen.level, seen.tile) == ("caution", ("caution", "caution"))


def test_a_halt_is_red_and_says_what_is_left_to_do(ending: dict[str, Notice]) -> None:
    """Where nothing is set aside any more, a new release is all that can be had."""
    seen = ending["halted"]
    assert (seen.level, seen.tile) == ("alarm", ("done", "over"))
    assert seen.colour == RED
    assert "All 3 unstable answers are used up." in seen.text
    assert "Nothing is set aside any more." in seen.text
    assert "conclave plan --config FILE" in seen.text


@pytest.fixture(scope="module")
def copies(
    release: SmallRelease, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, SmallRelease]:
    """Return a backup from before a halt and one from after it, each as a release of its own."""
    served = release.copy_to(tmp_path_factory.mktemp("copied"))
    made: dict[str, SmallRelease] = {}
    with serving(served.config) as server:
        for place, title in enumerate((LEFT, HALTED)):
            ask_split(server.address, CUTOFF * place, first=1)
            back_up(served)
            made[title] = served.copy_to(tmp_path_factory.mktemp("closed"))
            (served.folder / "copy.db").unlink()  # a backup is never written over
    for each in made.values():
        each.ledger.with_name("conclave.db-wal").unlink(missing_ok=True)
        each.ledger.with_name("conclave.db-shm").unlink(missing_ok=True)
        (each.folder / "copy.db").replace(each.ledger)
    return made


@pytest.mark.parametrize("title", [LEFT, HALTED])
def test_a_closed_copy_is_told_no_command_that_it_refuses(
    copies: dict[str, SmallRelease], browser: Browser, title: str
) -> None:
    """A share is set aside in it, and yet nothing can be drawn from it, which the page knows."""
    copy = copies[title]
    with serving(copy.config) as server, dashboard(browser) as page:
        page.open(server.address)
        seen = notice(page, title)
        assert seen.level == "alarm"
        assert "This ledger is a backup" in seen.text
        assert "conclave verify --config FILE" in seen.text
        assert "conclave learn" not in seen.text
        assert "set aside" not in seen.text
        page.shows("#stages [aria-current]", "Halted")
        page.shows("#budget-rows", "published classifier")
        assert page.said == []


def test_a_closed_copy_refuses_the_command_that_it_is_not_told(
    copies: dict[str, SmallRelease],
) -> None:
    """Both copies are closed alike, so one is asked."""
    learn = command("learn", "--config", str(copies[HALTED].config))
    assert learn.returncode == 1
    assert "this ledger is a backup" in learn.stderr.decode()


def test_a_release_whose_learners_failed_says_so(tmp_path: Path, browser: Browser) -> None:
    """A vote that failed ends the release for good, with nearly all its answers left."""
    release = SmallRelease(tmp_path, FAILING).write(asked=Asked(0, 0))
    with serving(release.config) as server, dashboard(browser) as page:
        page.open(server.address)
        page.shows("#stages [aria-current]", "Ensemble answers")
        query = {"features": FAILED_ON}
        failed = httpx.post(f"{server.address}/query", json=query, timeout=SECONDS_MAX)
        assert failed.status_code == httpx.codes.INTERNAL_SERVER_ERROR
        assert notice(page, "The release has stopped").level == "alarm"
        # No pill of the page that was open says that anything answers.
        assert page.text("#stages") == "Stopped"
        assert page.evaluate(COLOUR_OF_THE_PHASE) == RED
        assert page.page.title() == "Stopped: members · Conclave"
        assert "Nothing is answered any more" in page.text("#phase-words")
        assert page.text("#answers-forecast") == ""
        assert page.find("#chain").get_attribute("data-state") == "failed"
        assert "Not verified" in page.text("#chain")
    with serving(release.config) as server, dashboard(browser) as page:
        page.open(server.address)
        seen = notice(page, LEFT)
        assert seen.level == "alarm"
        assert "A failure was contained" in seen.text
        assert "conclave verify --config FILE" in seen.text
        assert page.text("#stages") == "Halted"  # it has never answered
        assert page.evaluate(COLOUR_OF_THE_PHASE) == RED
        assert page.said == []
    assert command("verify", "--config", str(release.config)).returncode == 0


def test_a_halt_at_the_limit_offers_every_share_that_is_set_aside(
    tmp_path: Path, browser: Browser
) -> None:
    """All answers are given: a classifier and a table are still to be had, each by its command."""
    release = SmallRelease(tmp_path, SET_ASIDE).write(asked=Asked(40, 0))
    with serving(release.config) as server, dashboard(browser) as page:
        page.open(server.address)
        ask_agreed(server.address, 40)
        seen = notice(page, HALTED)
        assert (seen.level, seen.tile) == ("alarm", ("over", "done"))
        assert "All 40 answers are given." in seen.text
        assert page.find("#alert .command").all_inner_texts() == [
            "conclave learn --config FILE",
            "conclave statistics --config FILE HYPOTHESES",
        ]
        assert page.text("#stages").split("\n") == ["Ensemble answered", "Halted"]
        assert page.evaluate(COLOUR_OF_THE_PHASE) == RED
        assert page.said == []


def test_a_release_on_other_rows_says_so(tmp_path: Path, browser: Browser) -> None:
    """A ledger that e54552f wrote, whose rows are not those any more as they are read now."""
    write_rows_of_two_types(tmp_path / "rows.db")
    ledger, config = tmp_path / "conclave.db", tmp_path / "conclave.toml"
    config.write_text(READ_BY_COLUMNS, encoding="utf-8")
    with closing(sqlite3.connect(ledger)) as connection:
        connection.executescript((HISTORIES / "rows_by_columns.sql").read_text(encoding="utf-8"))
    ledger.chmod(0o600)
    with serving(config) as server, dashboard(browser) as page:
        page.open(server.address)
        seen = notice(page, LEFT)
        assert seen.level == "alarm"
        assert "the records are not those that it was opened on" in seen.text
        assert page.find("#alert .command").all_inner_texts() == ["conclave verify --config FILE"]
        assert page.text("#stages").split("\n") == ["Ensemble answered", "Halted"]
        assert page.evaluate(COLOUR_OF_THE_PHASE) == RED
        statuses = [
            httpx.post(f"{server.address}/query", json={"features": vector}).status_code
            for vector in ([10, "a"], [11, "a"])
        ]
        assert statuses == [httpx.codes.OK, httpx.codes.GONE]  # recorded, and new
        assert page.said == []
    assert command("verify", "--config", str(config)).returncode == 0


def write_rows_of_two_types(path: Path) -> None:
    """Write 200 rows, of which the last has a number that is a text."""
    rows = [(99 if place % 3 else place, "a", "no") for place in range(199)]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (margin, 'group', answer)")
        values = [*rows, ("37", "b", "yes")]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", values)
        connection.commit()


def test_a_ledger_that_was_retired_says_so(own_release: SmallRelease, browser: Browser) -> None:
    """It has all its answers left, and gives none."""
    assert command("ledger", "retire", "--config", str(own_release.config)).returncode == 0
    with serving(own_release.config) as server, dashboard(browser) as page:
        page.open(server.address)
        assert "This ledger was retired" in notice(page, LEFT).text


def test_a_release_that_opens_and_one_that_stops_say_so(
    own_release: SmallRelease, browser: Browser
) -> None:
    """While the rows are read the page waits; an entry that was altered meanwhile stops all."""
    rows = own_release.source.rename(own_release.folder / "rows.csv")
    os.mkfifo(own_release.source)  # the server waits for whoever writes
    process = started(own_release.config).wait_until_alive()
    try:
        with dashboard(browser) as page:
            page.page.goto(process.address + "/")
            page.shows("#alert", "The release is being opened")
            assert page.find("#alert .notice").get_attribute("data-level") == "plain"
            assert page.text("#version")
            tamper(own_release.ledger, "UPDATE entries SET body = replace(body, 'relabel', 'x')")
            let_read(own_release.source, rows)
            page.shows("#alert", "The release has stopped")
            assert page.find("#alert .notice").get_attribute("data-level") == "alarm"
            assert "conclave verify --config FILE" in page.text("#alert")
            assert page.find("#connection").get_attribute("data-state") == "stopped"
            page.page.set_viewport_size(PHONE)
            page.page.wait_for_function(f"innerWidth === {PHONE['width']}")
            page.evaluate(TWO_FRAMES)  # so that whoever watches a size has been told
            assert "The release has stopped" in page.text("#alert")
            for chart in ("drain-figure", "time-figure", "hours-card"):
                assert page.find(f"#{chart}").is_hidden()  # nothing was told of them
    finally:
        process.kill()


def let_read(pipe: Path, rows: Path) -> None:
    """Put rows in the place of a pipe that is read from, and write them into it."""
    content, descriptor = rows.read_bytes(), os.open(pipe, os.O_WRONLY)
    rows.rename(pipe)
    with suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as written:
        written.write(content)


def test_more_answers_than_the_disk_has_room_for_are_a_caution(
    tmp_path: Path, browser: Browser
) -> None:
    """A limit of a hundred billion answers needs 37 terabytes, which this disk does not have."""
    release = SmallRelease(tmp_path, {"answers": {"queries": "100000000000"}})
    release.write(asked=Asked(0, 0))
    with serving(release.config) as server, dashboard(browser) as page:
        page.open(server.address)
        assert notice(page, "The disk may be full").level == "caution"
        page.shows("#alert", "100 billion are left")
        page.shows("#answers-left", "100 billion")
        page.shows("#answers-words", "of 100,000,000,000")
        page.page.set_viewport_size(PHONE)
        assert page.evaluate(BEYOND_THEIR_TILES) == 0


def write_keys(folder: Path) -> dict[str, str]:
    """Write a key of each role, one of them with a limit; return the server's environment."""
    rows = [
        f'[[keys]]\nname = "{name}"\nrole = "{role}"\nhash = "{hash_of(name)}"\n'
        + (f"limit = {LIMIT_OF_A_KEY}\n" if role == "query" else "")
        for name, role in KEYS.items()
    ]
    path = folder / "keys.toml"
    path.write_text("\n".join(rows), encoding="utf-8")
    return {"CONCLAVE_SERVER__KEYS_FILE": str(path)}


def test_the_operator_sees_keys_and_machine_and_a_reader_does_not(
    own_release: SmallRelease, browser: Browser
) -> None:
    """Keys with what each has used, the newest backup, head file and disk are the admin's alone."""
    environ = write_keys(own_release.folder)
    with serving(own_release.config, environ=environ) as server:
        ask_agreed(server.address, LIMIT_OF_A_KEY, key="web")
        with dashboard(browser, http_credentials=password("desk")) as page:
            page.open(server.address)
            page.shows("#key-rows", f"web{LIMIT_OF_A_KEY} of {LIMIT_OF_A_KEY}0")
            assert page.find("#key-rows td[data-level=alarm]").count() == 1
            page.shows("#backup", "unknown")
            page.shows("#disk", "free, for about")
            page.shows("#head-file", "the newest")
            back_up(own_release)
            page.page.reload()
            page.shows("#backup", "less than a minute ago")
            page.shows("#backup", "with every entry")
            assert page.said == []
        with dashboard(browser, http_credentials=password("wall")) as page:
            page.open(server.address)
            page.shows("#request-rows", f"the limits{LIMIT_OF_A_KEY}")
            assert page.find("#keys-card").is_hidden()
            assert page.find("#machine").is_hidden()
            assert [each for each in page.asked if each.endswith(OPERATORS)] == []
            assert page.said == []


def password(name: str) -> dict[str, str]:
    """Return what a browser sends for a key."""
    return {"username": "any", "password": name}


def back_up(release: SmallRelease) -> None:
    """Copy the ledger as an operator does, while it is served."""
    copy = release.folder / "copy.db"
    copied = command("ledger", "backup", "--config", str(release.config), "-o", str(copy))
    assert copied.returncode == 0, copied.stderr


def command(*words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command as an operator does, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "app", *words],
        cwd=ROOT,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
