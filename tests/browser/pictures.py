"""The pictures of ``docs/dashboard.md``, made anew: a real server, asked for a while, in Chromium.

Run it from the root; it takes two minutes::

    python -m tests.browser.pictures
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from tests.browser.chromium import PHONE, chromium, dashboard, installed
from tests.browser.phases import ask_agreed, ask_split
from tests.builders.server.http_release import SmallRelease
from tests.builders.server.server_process import ROOT, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = ROOT / "docs" / "pictures"
LIMIT, CUTOFF = 600, 10
CHANGES = {
    "privacy": {"epsilon": "13"},
    "shares": {"relabel": "0.3", "answers": "0.06", "classifier": "0.6"},
    "answers": {"queries": str(LIMIT), "cutoff": str(CUTOFF)},
}
# Answers of a burst; clients that ask now more, now less.
BURSTS = (9, 14, 6, 21, 17, 11, 24, 8, 15, 19, 12, 26)
UNSTABLE_AFTER = (2, 6, 10)
PAUSE_SECONDS = 2.0
COLOURS = 256
WHOLE = ("ensemble",)


def main() -> None:
    """Make every picture."""
    path = installed()
    if path is None:
        sys.exit("no Chromium on this machine")
    FOLDER.mkdir(exist_ok=True)
    with chromium(path) as browser, tempfile.TemporaryDirectory() as folder:
        release = SmallRelease(Path(folder) / "halts", CHANGES)
        release.folder.mkdir()
        with serving(release.write().config) as server:
            take(browser, server.address, "fresh")
            first = use(server.address)
            take(browser, server.address, "ensemble")
            take(browser, server.address, "dark", color_scheme="dark")
            take(browser, server.address, "phone", viewport=PHONE)
            other = release.copy_to(Path(folder) / "switches")
            ask_split(server.address, CUTOFF - len(UNSTABLE_AFTER) - 1, first=20)
            take(browser, server.address, "near-cutoff")
            ask_split(server.address, 1, first=40)
            take(browser, server.address, "halted")
        with serving(other.config) as server:
            ask_agreed(server.address, LIMIT - first, first=first)
            take(browser, server.address, "classifier")


def use(address: str) -> int:
    """Ask for a while as clients do, and return how many numbers of vectors are used."""
    first = 0
    for place, count in enumerate(BURSTS):
        ask_agreed(address, count, first=first)
        first += count
        if place in UNSTABLE_AFTER:
            ask_split(address, 1, first=place)
        time.sleep(PAUSE_SECONDS)
    return first


def shrink(path: Path) -> None:
    """Keep as many colours as a page has: a picture is a third as long then."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
            path, optimize=True
        )


def take(browser: Browser, address: str, name: str, **context: Any) -> None:
    """Take a picture once the page has every figure."""
    with dashboard(browser, **context) as page:
        page.open(address)
        page.shows("#parameters", "epsilon")
        page.page.wait_for_timeout(1500)  # the meters have come to rest
        path = FOLDER / f"dashboard-{name}.png"
        page.picture(path, whole=name in WHOLE)
        shrink(path)


if __name__ == "__main__":
    main()
