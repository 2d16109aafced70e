"""The page of the OpenAPI document in a browser that reaches this server and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.browser.chromium import dashboard
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

    from tests.builders.server.http_release import SmallRelease

pytestmark = pytest.mark.browser


def operation_ids(document: dict[str, Any]) -> list[str]:
    """Return the id of every operation of a document."""
    return [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    ]


def test_it_shows_every_operation_with_the_network_off(
    release: SmallRelease, browser: Browser
) -> None:
    """Each operation of the document is on the page, one answers, and no other host is asked."""
    with serving(release.config) as server, dashboard(browser) as page:
        own = server.address + "/"

        def reach(route: Route) -> None:
            route.continue_() if route.request.url.startswith(own) else route.abort()

        page.page.route("**/*", reach)
        page.page.goto(own + "docs")
        page.shows("#operations", "POST")
        shown = page.find(".opblock")
        asked = operation_ids(httpx.get(own + "openapi.json").json())
        shown.nth(len(asked) - 1).wait_for()
        assert shown.count() == len(asked)
        page.find("#operations-default-ledger_head .opblock-summary-control").click()
        page.find("#operations-default-ledger_head .try-out__btn").click()
        page.find("#operations-default-ledger_head .execute").click()
        page.shows("#operations-default-ledger_head .live-responses-table", "sequence")
        # `data:` is the style sheet's own pictures.
        assert [each for each in page.asked if not each.startswith((own, "data:"))] == []
        assert page.said == []
