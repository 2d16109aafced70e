"""Other ways to read the dashboard: by keyboard, by ear, without motion, as tables."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import ViewportSize

from tests.browser.chromium import PHONE, dashboard
from tests.browser.phases import CUTOFF, REACH
from tests.browser.test_alarms import BEYOND_THEIR_TILES, password, write_keys
from tests.browser.test_phases import CUT, WIDTHS
from tests.builders.server.server_process import ServerProcess, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.browser.conftest import Open
    from tests.builders.server.http_release import SmallRelease

pytestmark = pytest.mark.browser

TABLET = ViewportSize(width=768, height=1024)
LONG = "k" * 64


@pytest.fixture(scope="module")
def server(
    release: SmallRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """Serve a release that has answered, one answer unstable."""
    copy = release.copy_to(tmp_path_factory.mktemp("served"))
    with serving(copy.config) as process:
        REACH["ensemble"](process.address)
        yield process


def test_nothing_moves_where_motion_is_not_wanted(server: ServerProcess, open_page: Open) -> None:
    """A meter glides to its new width, but for who asked for reduced motion."""
    durations = {}
    for motion in ("no-preference", "reduce"):
        with open_page(server.address, reduced_motion=motion) as page:
            durations[motion] = page.evaluate(
                "getComputedStyle(document.querySelector('.meter span')).transitionDuration"
            )
    assert durations == {"no-preference": "0.4s", "reduce": "0s"}


def test_it_is_walked_by_keyboard(server: ServerProcess, open_page: Open) -> None:
    """Tab goes through everything that unfolds, in reading order, and Enter unfolds it."""
    with open_page(server.address) as page:
        page.shows("#parameters", "epsilon")
        # The last card to come: it is shown when its own request is answered.
        page.shows("#hours-words", "in the last")
        walked = []
        for _ in range(8):
            page.page.keyboard.press("Tab")
            walked.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 40)"))
        assert walked[:3] == [
            "Skip to the figures",
            "As a table of unstable answers used",
            "As a table of answers over time",
        ]
        # Two tables, which scroll where they are wide.
        assert walked[3].startswith("Kind")
        assert walked[4] == "As a table of requests by hour"
        assert walked[5].startswith("Mechanism")
        assert walked[6:] == ["What is checked, and what is not", "Words of this page"]
        page.page.keyboard.press("Enter")
        assert page.find("#words").get_attribute("open") is not None
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"


def test_a_chart_is_told_in_words_and_in_a_table(server: ServerProcess, open_page: Open) -> None:
    """Each chart has a name that says its figures, and a table with the same numbers."""
    with open_page(server.address) as page:
        page.shows("#drain-chart svg", "0")
        name = page.find("#drain-chart svg").get_attribute("aria-label")
        assert name is not None
        assert f"1 of {CUTOFF} after 51 answers" in name
        page.find("#drain-figure summary").click()
        rows = page.find("#drain-table tbody tr").all_inner_texts()
        assert rows == ["0\t0", "21\t1", "51\t1"]
        page.find("#time-figure summary").click()
        last = page.find("#time-table tbody tr").last.inner_text()
        assert last.endswith("\t51\t1")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(9_999_999, "9,999,999"), (88_888_888, "88.9 million"), (999_999_999, "1 billion")],
)
@pytest.mark.parametrize("phase", ["ensemble", "halted"])
def test_large_numbers_fit_their_tiles(
    server: ServerProcess, open_page: Open, phase: str, count: int, shown: str
) -> None:
    """A cutoff may be a billion; what a tile has no room for is rounded, and told below."""
    with open_page(server.address) as page:
        budget = httpx.get(f"{server.address}/budget").json()
        budget["phase"] = phase
        budget["queries"] |= {"answered": 2 * count, "limit": 3 * count, "left": count}
        budget["unstable"] |= {"count": count, "cutoff": 2 * count, "left": count}
        body = f"event: budget\ndata: {json.dumps(budget)}\n\n"
        page.page.route(
            "**/budget/events?outlook=true",
            lambda route: route.fulfill(body=body, content_type="text/event-stream"),
        )
        page.page.reload()
        for tile in ("answers", "unstable"):
            page.shows(f"#{tile}-left", shown)
        page.shows("#unstable-words", f"{2 * count:,}")
        for width in (1920, *WIDTHS):
            page.page.set_viewport_size({"width": width, "height": PHONE["height"]})
            assert page.evaluate(BEYOND_THEIR_TILES) == 0
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_long_name_of_a_key_is_wrapped(
    tmp_path: Path, own_release: SmallRelease, browser: Browser
) -> None:
    """A key's name may have 64 letters, and a phone shows what was used beside it."""
    environ = write_keys(tmp_path)
    keys = tmp_path / "keys.toml"
    text = keys.read_text(encoding="utf-8").replace('"web"', f'"{LONG}"')
    keys.write_text(text, encoding="utf-8")
    with (
        serving(own_release.config, environ=environ) as server,
        dashboard(browser, http_credentials=password("desk"), viewport=TABLET) as page,
    ):
        page.open(server.address)
        page.shows("#key-rows", LONG)
        assert page.evaluate(CUT) == 0


def test_little_is_spoken(server: ServerProcess, open_page: Open) -> None:
    """Only the connection and an alarm are live: figures that change do not interrupt."""
    with open_page(server.address) as page:
        live = page.evaluate(
            "[...document.querySelectorAll('[aria-live], [role=status], [role=alert]')]"
            ".map((each) => each.id)"
        )
        assert sorted(live) == ["alert", "connection"]


def test_every_parameter_has_its_formula(server: ServerProcess, open_page: Open) -> None:
    """The glossary and each formula in it are folded away, and shown when they are asked for."""
    with open_page(server.address) as page:
        page.shows("#parameters", "limit of answers (m)")
        formula = page.find("#parameters code").first
        assert not formula.is_visible()
        page.find("#parameters-fold > summary").click()
        assert page.find("#parameters h3").first.is_visible()
        assert not formula.is_visible()
        page.find("#parameters summary").first.click()
        assert "e^epsilon" in formula.inner_text()


def test_its_icon_and_its_links_are_there(server: ServerProcess, open_page: Open) -> None:
    """The icon and every link at the end are answered; none leads to a classifier before it is."""
    with open_page(server.address) as page:
        page.shows("#version", ".")
        links = page.evaluate(
            "[...document.querySelectorAll('link[rel=icon], footer a:not([hidden])')]"
            ".map((each) => each.href)"
        )
        statuses = {link: page.page.request.get(link).status for link in links}
        assert set(statuses.values()) == {200}, statuses
        paths = {link.removeprefix(server.address) for link in links}
        assert paths == {
            "/dashboard/icon.svg",
            "/docs",
            "/budget",
            "/budget/outlook",
            "/parameters",
            "/ledger/head",
            "/metrics",
        }


def test_every_rate_is_per_second(server: ServerProcess, open_page: Open) -> None:
    """Rates of answers have one unit on the whole page, unfolded."""
    with open_page(server.address) as page:
        page.shows("#parameters", "epsilon")
        text = page.evaluate("document.body.textContent")
        units = re.findall(r"(?i)per (second|minute|hour|day|week)\b", text)
        assert {unit.lower() for unit in units} == {"second"}
        assert len(units) >= 3
