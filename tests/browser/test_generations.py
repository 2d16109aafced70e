"""The dashboard of a release that grows: its generations, their alarms, and a history by hour."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.builders.server.server_process import serving
from tests.http.end_to_end.test_generations import AGREED, SPLIT, TRIES, Life

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import Open

pytestmark = pytest.mark.browser


def test_what_waits_and_what_is_left_is_told(tmp_path: Path, open_page: Open) -> None:
    """Below the quorum the phase says so, and a line lists the generations; no error is shown."""
    life = Life(tmp_path, quorum=2)
    with serving(life.config) as process:
        life.append("second", seed=2)
        with open_page(process.address) as page:
            page.shows("#stages", "Waiting for generations")
            page.shows("#phase-words", "Fewer generations of records vote than the quorum")
            page.shows("#generations", "1 vote, 1 wait, 0 retired; the quorum is 2.")
            page.shows("#generation-rows", "3 of 3 left")
            page.shows("#generation-rows", "waits")
            page.shows("#generations-next", "Generation 2 joins at the tick of")
            page.shows("#generations-next", "a tick comes every hour.")
            page.shows("#alert", "Fewer generations vote than the quorum")
            page.shows("#alert", "conclave append --config FILE SOURCE")
            page.shows("#answers-left", "0")
            page.shows("#unstable-left", "0")
            page.shows("#unstable-words", "None so far; each generation has a cutoff of its own.")
            page.shows("#rate-words", "No answer yet to judge by.")
            page.shows("#parameters", "Each generation has as many of its own")
            assert "drain alarm" not in (page.find("#parameters").text_content() or "")


def spend(address: str, life: Life, *, left: int) -> None:
    """Ask what the learners are split about, until a generation has so many unstable ones left."""
    for _ in range(TRIES):
        (generation,) = httpx.get(f"{address}/budget").json()["generations"]
        if generation["unstable"]["left"] <= left:
            return
        httpx.post(f"{address}/query", json={"features": life.near(SPLIT)})
    raise AssertionError("split votes come to unstable answers")


def test_the_last_generation_raises_an_alarm_and_the_history_goes_on(
    tmp_path: Path, open_page: Open
) -> None:
    """Real unstable answers raise it, here and for Prometheus; an append and a restart end it."""
    life = Life(tmp_path)
    life.now = time.time()
    with serving(life.config) as process:
        httpx.post(f"{process.address}/query", json={"features": life.near(AGREED)})
        spend(process.address, life, left=1)
        with open_page(process.address) as page:
            page.shows("#alert", "No generation may vote soon")
            page.shows("#generation-rows", "1 of 3 left")
            page.shows("#hours-words", "2 of them unstable")
            assert not page.said
        scraped = httpx.get(f"{process.address}/metrics").text
        assert 'conclave_generations{state="waiting"} 0.0' in scraped
        assert 'conclave_generation_unstable_left{generation="1"} 1.0' in scraped
        process.terminate()
        process.wait()
    life.append("second", seed=2)
    with serving(life.config) as process, open_page(process.address) as page:
        page.shows("#alert", "The quorum is in danger")
        page.shows("#hours-words", "2 of them unstable")
        page.find("#hours-card summary").click()
        page.shows("#hours-table", "Free")
        for width in (1440, 768, 375):
            page.page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width
