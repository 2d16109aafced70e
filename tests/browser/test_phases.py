"""The dashboard in every phase: its figures, its accessibility, its widths and schemes.

Two servers live through the phases, each with one page open; every phase is looked at
once, and the tests judge what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe

from app.http.version import installed_version
from tests.browser.chromium import PHONE, WALL, Dashboard, dashboard
from tests.browser.phases import CUTOFF, LIMIT, LIVES, REACH
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.builders.server.http_release import SmallRelease

pytestmark = pytest.mark.browser

RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (WALL["width"], 768, 375, PHONE["width"])
GIVEN = "#request-rows tr:nth-child({row}) td:nth-of-type(1)"
# Of a box that could be scrolled sideways, and would hide a column.
CUT = "[...document.querySelectorAll('.wide')].filter((e) => e.scrollWidth > e.clientWidth).length"
UNFOLD = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
# What each phase must show: an element, and a text in it.
SHOWN = {
    "fresh": {
        "#stages [aria-current]": "Ensemble answers",
        "#answers-left": f"{LIMIT}",
        "#unstable-left": f"{CUTOFF}",
        "#rate-words": "No answer yet",
        "#answers-forecast": "no forecast",
        "#pace": "0",
        "#version": installed_version(),
        "#chain": "Verified from entry 1 to entry 5",
    },
    "ensemble": {
        "#answers-left": f"{LIMIT - 51}",
        "#answers-words": f"of {LIMIT}; 50 labels given, 1 unstable",
        "#answers-forecast": "Used up in",
        "#unstable-left": f"{CUTOFF - 1}",
        # Clopper and Pearson's bounds of one in 51.
        "#rate": "2",
        "#rate-words": "0.05 to 10.4",
        "#rate-allowed": "0.83",
        "#alert": "Less than an hour left",
        GIVEN.format(row=1): "51",
    },
    "near the cutoff": {
        "#unstable-left": "1",
        "#unstable-forecast": "90 % sure",
        "#alert": "draining unusually fast",
    },
    "halted": {
        "#stages [aria-current]": "Halted",
        "#phase-words": "refused",
        "#answers-title": "Labels given",
        "#answers-left": "50",
        "#answers-words": f"in 55 answers, of {LIMIT} at most",
        "#pace-title": "Repeated answers per second",
        "#alert": "conclave learn --config FILE",
        "#unstable-title": "Unstable answers used",
        "#unstable-left": f"{CUTOFF}",
        "#unstable-words": f"of {CUTOFF} at most",
        "#answers-forecast": "answers nothing new any more",
    },
    "classifier": {
        "#stages [aria-current]": "Classifier answers",
        "#phase-words": "unlimited",
        "#answers-title": "Labels given",
        "#answers-left": f"{LIMIT - 1}",
        "#pace-title": "Classifier's answers per second",
        GIVEN.format(row=1): f"{LIMIT}",
        GIVEN.format(row=3): "3",
        "#budget-rows": "published classifier",
        "#pace-note": "free",
    },
}


@dataclass(frozen=True)
class Seen:
    """What was seen of one phase.

    Attributes:
        texts: of every element that the phase must show something in.
        violations: axe's report where it found any, by scheme.
        passes: how many of axe's rules were looked at and passed, by scheme.
        grounds: sum of the ground's red, green and blue, by scheme.
        widths: of the document, by that of the window, pixels.
        cut: tables of which a column is cut off, by the width of the window.
        strangers: requests to anything but the server.
        said: what the console said.

    """

    texts: dict[str, str]
    violations: dict[str, str]
    passes: dict[str, int]
    grounds: dict[str, int]
    widths: dict[int, int]
    cut: dict[int, int]
    strangers: list[str]
    said: list[str]


@pytest.fixture(scope="module")
def seen(
    browser: Browser, release: SmallRelease, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Seen]:
    """Live through every phase, and look at each."""
    found: dict[str, Seen] = {}
    for life in LIVES:
        copy = release.copy_to(tmp_path_factory.mktemp("served"))
        with serving(copy.config) as server, dashboard(browser) as page:
            page.open(server.address)
            for phase in life:
                REACH[phase](server.address)
                if phase not in found:
                    found[phase] = look(page, phase, server.address)
    return found


def look(page: Dashboard, phase: str, address: str) -> Seen:
    """Wait until a phase is shown, and look at it in both schemes and on a phone."""
    for selector, text in SHOWN[phase].items():
        page.shows(selector, text)
    texts = {selector: page.text(selector) for selector in SHOWN[phase]}
    page.evaluate(UNFOLD)
    audits: dict[str, Any] = {}
    grounds: dict[str, int] = {}
    for scheme in SCHEMES:
        page.page.emulate_media(color_scheme=scheme)
        audits[scheme] = Axe().run(page.page, options={"runOnly": RULES})
        grounds[scheme] = ground(page)
    widths: dict[int, int] = {}
    cut: dict[int, int] = {}
    for width in WIDTHS:
        page.page.set_viewport_size({"width": width, "height": PHONE["height"]})
        widths[width] = page.evaluate("document.documentElement.scrollWidth")
        cut[width] = page.evaluate(CUT)
    page.page.set_viewport_size(WALL)
    return Seen(
        texts,
        {scheme: audit.generate_report() for scheme, audit in audits.items() if violations(audit)},
        {scheme: len(audit.response["passes"]) for scheme, audit in audits.items()},
        grounds,
        widths,
        cut,
        [asked for asked in page.asked if not asked.startswith(address + "/")],
        list(page.said),
    )


def violations(audit: Any) -> int:
    """Return how many rules are violated."""
    count: int = audit.violations_count
    return count


def ground(page: Dashboard) -> int:
    """Return the sum of the ground's three colours, 0 to 765."""
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour[4:-1].split(","))


@pytest.mark.parametrize("phase", REACH)
def test_it_shows_the_figures_of_the_phase(seen: dict[str, Seen], phase: str) -> None:
    """Each phase shows its counts, its words and its forecast, live and without a reload."""
    for selector, text in SHOWN[phase].items():
        assert text in seen[phase].texts[selector]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("phase", REACH)
def test_it_is_accessible(seen: dict[str, Seen], phase: str, scheme: str) -> None:
    """Axe finds no violation of WCAG 2 A and AA, everything unfolded, in both schemes."""
    assert seen[phase].violations.get(scheme) is None
    assert seen[phase].passes[scheme] > 10


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("phase", REACH)
def test_it_fits_every_width(seen: dict[str, Seen], phase: str, width: int) -> None:
    """Nothing reaches beyond the edge and no column is cut off, everything unfolded."""
    assert (seen[phase].widths[width], seen[phase].cut[width]) == (width, 0)


@pytest.mark.parametrize("phase", REACH)
def test_it_asks_nobody_else_and_complains_of_nothing(seen: dict[str, Seen], phase: str) -> None:
    """No request leaves for another host, and the console stays empty."""
    assert (seen[phase].strangers, seen[phase].said) == ([], [])


def test_the_dark_scheme_is_dark(seen: dict[str, Seen]) -> None:
    """The ground is dark where the system is, and light elsewhere."""
    assert seen["fresh"].grounds["dark"] < 100
    assert seen["fresh"].grounds["light"] > 600
