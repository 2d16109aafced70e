"""A browser for a module, and a small release that was opened once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.browser.chromium import Dashboard, chromium, dashboard, installed
from tests.browser.phases import CHANGES
from tests.builders.server.http_release import SmallRelease
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser

Open: TypeAlias = "Callable[..., AbstractContextManager[Dashboard]]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a running Chromium, or skip where none is installed."""
    path = installed()
    if path is None:
        pytest.skip("no Chromium on this machine; Debian's package is `chromium`")
    with chromium(path) as running:
        yield running


@pytest.fixture(scope="module")
def release(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> SmallRelease:
    """Return a release that was opened once, and not asked."""
    del browser  # first, so that nothing is opened where there is none
    opened = SmallRelease(tmp_path_factory.mktemp("release"), CHANGES).write()
    # In a process of its own: Playwright's event loop runs on this thread.
    with serving(opened.config) as server:
        server.terminate()
        server.wait()
    return opened


@pytest.fixture
def own_release(release: SmallRelease, tmp_path: Path) -> SmallRelease:
    """Return a copy of the release for one test, which may restart and change it."""
    return release.copy_to(tmp_path / "release")


@pytest.fixture
def open_page(browser: Browser) -> Open:
    """Return what opens the dashboard of an address in a page of its own."""

    @contextmanager
    def opened(address: str, **context: object) -> Iterator[Dashboard]:
        with dashboard(browser, **context) as page:
            yield page.open(address)

    return opened
