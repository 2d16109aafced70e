"""Pictures of every state of the dashboard at three widths, light and dark, to be looked at.

Run it from the root; it takes four minutes::

    python -m tests.browser.every_state FOLDER [STATE ...]

Each state is that of a real release, and its pictures are of the whole page.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx

from tests.browser.chromium import Dashboard, chromium, dashboard, installed
from tests.browser.phases import CHANGES, CUTOFF, REACH, SECONDS_MAX, ask_agreed, ask_split
from tests.browser.test_alarms import (
    ENDS,
    FAILED_ON,
    FAILING,
    back_up,
    command,
    password,
    write_keys,
)
from tests.browser.test_generations import spend
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease
from tests.builders.server.server_process import SERVE, serving
from tests.http.end_to_end.test_generations import AGREED, Life

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playwright.sync_api import Browser

WIDTHS: Final = (1440, 768, 375)
HEIGHT: Final = 900
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
REST_MILLISECONDS: Final = 600
SETTLED_MILLISECONDS: Final = 3000
STUDENT: Final = {
    "shares": {"relabel": "0.3", "answers": "0.1", "classifier": "0"},
    "answers": {"after": '"student"', "on_cutoff": '"student"'},
}


class Studio:
    """A browser and a folder that pictures are written to."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        """Take pictures with a browser, into a folder."""
        self.browser = browser
        self._folder = folder

    @contextmanager
    def page(self, address: str, **context: Any) -> Iterator[Dashboard]:
        """Open a dashboard, and wait until it has every figure."""
        with dashboard(self.browser, **context) as page:
            yield page.open(address)

    def take(self, page: Dashboard, name: str) -> None:
        """Write six pictures of what a page shows."""
        page.page.wait_for_timeout(SETTLED_MILLISECONDS)
        for scheme in SCHEMES:
            page.page.emulate_media(color_scheme=scheme)
            for width in WIDTHS:
                page.page.set_viewport_size({"width": width, "height": HEIGHT})
                page.page.wait_for_timeout(REST_MILLISECONDS)
                path = self._folder / f"{name}-{width}-{scheme}.png"
                page.picture(path, whole=True)
        page.page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})

    def look(self, address: str, name: str, **context: Any) -> None:
        """Open a dashboard, and write its pictures."""
        with self.page(address, **context) as page:
            self.take(page, name)


def lived(studio: Studio, folder: Path) -> None:
    """Live from the opening to the cutoff, and beside it to the classifier."""
    (folder / "one").mkdir()
    release = SmallRelease(folder / "one", CHANGES).write()
    with serving(release.config) as server:
        for phase in ("fresh", "ensemble"):
            REACH[phase](server.address)
            studio.look(server.address, phase)
    other = release.copy_to(folder / "other")
    with serving(release.config) as server:
        for phase in ("near the cutoff", "halted"):
            REACH[phase](server.address)
            studio.look(server.address, phase.replace(" ", "-"))
    with serving(other.config) as server:
        REACH["classifier"](server.address)
        studio.look(server.address, "classifier")


def halted_without_a_share(studio: Studio, folder: Path) -> None:
    """Halt where a new release is all that can be had."""
    release = SmallRelease(folder, ENDS).write()
    with serving(release.config) as server:
        ask_agreed(server.address, 32)
        studio.look(server.address, "few-answers")
        ask_split(server.address, 3)
        studio.look(server.address, "halted-without-a-share")


def student(studio: Studio, folder: Path) -> None:
    """Let a student of the answers answer."""
    release = SmallRelease(folder, STUDENT).write()
    with serving(release.config) as server:
        ask_agreed(server.address, 43)
        studio.look(server.address, "student")


def hopeless(studio: Studio, folder: Path) -> None:
    """Open a release that gives next to no stable answer."""
    release = SmallRelease(folder, {"answers": {"ensemble": "40"}}).write(asked=Asked(0, 0))
    with serving(release.config, script=(*SERVE, "--even-if-hopeless")) as server:
        studio.look(server.address, "hopeless")


def operator(studio: Studio, folder: Path) -> None:
    """Show the keys and the machine to an administrator."""
    release = SmallRelease(folder, CHANGES).write()
    with serving(release.config, environ=write_keys(folder)) as server:
        ask_agreed(server.address, 3, key="web")
        back_up(release)
        studio.look(server.address, "operator", http_credentials=password("desk"))


def closed(studio: Studio, folder: Path) -> None:
    """Retire a ledger that has answers left."""
    release = SmallRelease(folder, CHANGES).write()
    with serving(release.config) as server:
        ask_agreed(server.address, 3)
    assert command("ledger", "retire", "--config", str(release.config)).returncode == 0
    with serving(release.config) as server:
        studio.look(server.address, "retired")


def stopped(studio: Studio, folder: Path) -> None:
    """Let the learners fail, before a page that is open and after a new start."""
    release = SmallRelease(folder, FAILING).write(asked=Asked(0, 0))
    with serving(release.config) as server, studio.page(server.address) as page:
        query = {"features": FAILED_ON}
        httpx.post(f"{server.address}/query", json=query, timeout=SECONDS_MAX)
        page.shows("#alert", "The release has stopped")
        studio.take(page, "stopped")
    with serving(release.config) as server:
        studio.look(server.address, "halted-by-a-failure")


def waiting(studio: Studio, folder: Path) -> None:
    """Open a release that grows below its quorum."""
    life = Life(folder, quorum=2)
    with serving(life.config) as server:
        life.append("second", seed=2)
        studio.look(server.address, "waiting")


def generations(studio: Studio, folder: Path) -> None:
    """Use up the first generation of a release that grows, and append another."""
    life = Life(folder)
    life.now = time.time()
    with serving(life.config) as server:
        for _ in range(CUTOFF):
            query = {"features": life.near(AGREED)}
            httpx.post(f"{server.address}/query", json=query, timeout=SECONDS_MAX)
        studio.look(server.address, "generations")
        spend(server.address, life, left=1)
        studio.look(server.address, "last-generation")
        life.append("second", seed=2)
    with serving(life.config) as server:
        studio.look(server.address, "quorum-in-danger")


STATES: Final[Mapping[str, Callable[[Studio, Path], None]]] = {
    "lived": lived,
    "halted": halted_without_a_share,
    "student": student,
    "hopeless": hopeless,
    "operator": operator,
    "closed": closed,
    "stopped": stopped,
    "waiting": waiting,
    "generations": generations,
}


def main() -> None:
    """Write the pictures of the states that are named, or of all."""
    path = installed()
    if path is None:
        sys.exit("no Chromium on this machine")
    folder, *names = sys.argv[1:]
    Path(folder).mkdir(exist_ok=True)
    with chromium(path) as browser:
        studio = Studio(browser, Path(folder))
        for name in names or STATES:
            with tempfile.TemporaryDirectory() as releases:
                STATES[name](studio, Path(releases))


if __name__ == "__main__":
    main()
