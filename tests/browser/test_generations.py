"""The dashboard of a release that grows: its phase, and what each generation has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders.server.server_process import serving
from tests.http.end_to_end.test_generations import Life

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
            told = "Generations (quorum 2): 1 votes, 3 of 3 unstable left"
            page.shows("#generations", told)
            page.shows("#answers-left", "0")
            page.shows("#unstable-left", "no cutoff")
