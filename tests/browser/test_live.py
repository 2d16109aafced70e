"""The dashboard while things happen: answers, an end, a new start, another key, a hostile name."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx
import pytest

from app.http.access.keys import hash_of
from tests.browser.chromium import dashboard
from tests.browser.phases import CUTOFF, LIMIT, ask, ask_agreed, ask_split
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease, agreed, split
from tests.builders.server.nursery import started
from tests.builders.server.server_process import SERVE, serving
from tests.http.end_to_end.test_second_release import FurtherRelease

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.browser.conftest import Open

pytestmark = pytest.mark.browser

END_SECONDS_MAX = 10.0
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)<\\\\script>{{7*7}}"
NAME = HOSTILE.replace("\\\\", "\\")
KEY_OF_THE_WALL, KEY_OF_ANOTHER = "key-of-the-wall", "key-of-another"


def test_answers_show_at_once(own_release: SmallRelease, open_page: Open) -> None:
    """New answers, their rate and their history come by themselves, and survive a reload."""
    with serving(own_release.config) as server, open_page(server.address) as page:
        page.shows("#answers-left", str(LIMIT))
        ask_agreed(server.address, 1)
        page.shows("#answers-left", str(LIMIT - 1))
        page.shows("#time-table", "1")
        assert "no forecast" in page.text("#answers-forecast")
        ask_agreed(server.address, 14, first=1)
        page.shows("#answers-forecast", "at the present rate")
        ask_split(server.address, 1)
        page.shows("#unstable-left", str(CUTOFF - 1))
        page.shows("#drain-words", f"1 of {CUTOFF} after 16 answers")
        page.shows("#rate", "6.3")  # one of sixteen: the outlook has come as well
        tables = "[...document.querySelectorAll('tbody')].slice(0, 2).map((each) => each.innerText)"
        page.find("#drain-figure summary").click()
        page.find("#time-figure summary").click()
        before = page.evaluate(tables)
        page.page.reload()
        page.shows("#time-table", "16")
        page.find("#drain-figure summary").click()
        page.find("#time-figure summary").click()
        assert page.evaluate(tables) == before
        assert page.said == []


def test_it_comes_back_after_a_restart(own_release: SmallRelease, open_page: Open) -> None:
    """An open page neither keeps the server from ending nor misses the next one."""
    process = started(own_release.config).wait_until_ready()
    port = process.address.rpartition(":")[2]
    with open_page(process.address) as page:
        ask_agreed(process.address, 3)
        page.shows("#answers-left", str(LIMIT - 3))
        asked = time.monotonic()
        process.terminate()
        assert process.wait() == 0
        assert time.monotonic() - asked < END_SECONDS_MAX
        page.shows("#connection", "trying again")
        page.shows("#answers-left", str(LIMIT - 3))  # the last that it gave stays
        with serving(own_release.config, environ={"CONCLAVE_SERVER__PORT": port}) as server:
            page.shows("#connection", "Live")
            ask_agreed(server.address, 2, first=3)
            page.shows("#answers-left", str(LIMIT - 5))
            page.shows("#drain-words", "after 5 answers")


def write_key(path: Path, key: str) -> None:
    """Let one key of the role read in, and no other."""
    row = f'[[keys]]\nname = "wall"\nrole = "read"\nhash = "{hash_of(key)}"\n'
    path.write_text(row, encoding="utf-8")


def test_a_refused_key_is_told(own_release: SmallRelease, browser: Browser) -> None:
    """The key is the password of Basic; one that is taken away gets words, not a blank page."""
    keys = own_release.folder / "keys.toml"
    write_key(keys, KEY_OF_THE_WALL)
    environ = {"CONCLAVE_SERVER__KEYS_FILE": str(keys)}
    credentials = {"username": "wall", "password": KEY_OF_THE_WALL}
    with (
        serving(own_release.config, environ=environ) as server,
        dashboard(browser, http_credentials=credentials) as page,
    ):
        assert httpx.get(server.address + "/").status_code == httpx.codes.UNAUTHORIZED
        page.open(server.address)
        page.shows("#connection", "Live")
        assert page.said == []
        write_key(keys, KEY_OF_ANOTHER)
        page.shows("#connection", "did not accept the key")
        assert page.find("#connection").get_attribute("data-state") == "refused"
        assert page.text("#answers-left") == str(LIMIT)


def test_a_hopeless_release_says_so_for_good(tmp_path: Path, open_page: Open) -> None:
    """The caution is there at its opening and after a restart without the flag."""
    release = SmallRelease(tmp_path, {"answers": {"ensemble": "40"}}).write(asked=Asked(0, 0))
    for script in ((*SERVE, "--even-if-hopeless"), SERVE):
        with (
            serving(release.config, script=script) as server,
            open_page(server.address) as page,
        ):
            page.shows("#answers-left", "40")
            page.shows("#hopeless", "opened though it is hopeless")
            assert page.find("#hopeless").is_visible()


def test_another_release_says_nothing_of_hope(own_release: SmallRelease, open_page: Open) -> None:
    """Where a release is not hopeless the caution is not shown."""
    with serving(own_release.config) as server, open_page(server.address) as page:
        page.shows("#answers-left", str(LIMIT))
        assert page.find("#hopeless").is_hidden()


@pytest.fixture
def hostile(own_release: SmallRelease) -> FurtherRelease:
    """Return a release of scores with a name that is markup, beside the first in its ledger."""
    changes = {
        **own_release.changes,
        "shares": {"relabel": "0", "answers": "0.7", "classifier": "0.3"},
        "answers": {**own_release.changes["answers"], "output": '"score"'},
    }
    release = FurtherRelease(own_release.folder, changes, HOSTILE, ("24", "2e-12"))
    config = own_release.folder / "hostile.toml"
    config.write_text(release.text(), encoding="utf-8")
    return release


def test_a_hostile_name_is_text(hostile: FurtherRelease, open_page: Open) -> None:
    """Markup in the name of a release is shown as it is written, and makes no element."""
    with (
        serving(hostile.folder / "hostile.toml") as server,
        open_page(server.address) as page,
    ):
        opened: list[str] = []
        page.page.on("dialog", lambda dialog: opened.append(dialog.message))
        page.shows("#release", NAME)
        assert page.page.title() == f"{NAME} · Conclave"
        assert page.find("main img, #release *, header script").count() == 0
        page.shows("#composed", "The 2 releases of this ledger promise together epsilon 24")
        # With scores, what is counted are units.
        ask(server.address, [agreed(1), split(1), split(2)])
        page.shows("#answers-words", "3 given")
        unstable = httpx.get(server.address + "/budget").json()["unstable"]
        assert page.text("#unstable-title") == "Units left"
        page.shows("#unstable-words", f"{unstable['count']} used")
        page.shows("#drain-title", "Units used")
        assert page.text("#rate-title") == "Units per 100 answers"
        assert opened == []
        assert page.said == []
