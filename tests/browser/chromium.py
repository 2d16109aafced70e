"""A real Chromium, and the dashboard in it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Error, ViewportSize, expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Locator, Page

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# What any of these may be called that a system installed.
NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MILLISECONDS = 300_000  # a machine may be busy
WALL = ViewportSize(width=1440, height=900)
PHONE = ViewportSize(width=360, height=740)


def installed() -> str | None:
    """Return where Chromium is; None where it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """Run a browser while the block does."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Dashboard:
    """The dashboard in a page of its own.

    Attributes:
        page: Playwright's.
        said: what the console and uncaught errors said.
        asked: the address of every request.

    """

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listen from the first request on."""
        self.page.set_default_timeout(PATIENCE_MILLISECONDS)
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"uncaught: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, address: str) -> Dashboard:
        """Go to a server, and wait until its figures are shown."""
        self.page.goto(address + "/")
        self.shows("#chain", "Verified")
        return self

    def find(self, selector: str) -> Locator:
        """Return an element."""
        return self.page.locator(selector)

    def shows(self, selector: str, text: str) -> None:
        """Wait until an element has a text in it."""
        expect(self.find(selector)).to_contain_text(text, timeout=PATIENCE_MILLISECONDS)

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return self.find(selector).inner_text()

    def evaluate(self, expression: str) -> Any:
        """Return what an expression gives in the page."""
        return self.page.evaluate(expression)

    def picture(self, path: Path, *, whole: bool) -> None:
        """Write a picture of the page, or of as much as is seen at once."""
        self.page.screenshot(path=path, full_page=whole)


@contextmanager
def dashboard(browser: Browser, **context: Any) -> Iterator[Dashboard]:
    """Open a page with its own cookies, cache and scheme; options are those of a context."""
    options = {"viewport": WALL, "color_scheme": "light", "timezone_id": "UTC", **context}
    opened: BrowserContext = browser.new_context(**options)
    try:
        yield Dashboard(opened.new_page())
    finally:
        close(opened)


def close(opened: BrowserContext) -> None:
    """Close a context; one whose browser has gone is closed."""
    try:
        opened.close()
    except Error:
        return
