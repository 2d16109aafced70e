"""The page of the OpenAPI document: from the installed files, open to all, and to no other host."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.metadata import distribution

import pytest

from app.http.dashboard.page import HEADERS
from app.http.openapi.swagger_page import (
    DISTRIBUTION,
    HEADERS_OF_LIBRARY,
    LIBRARY,
    swagger_responses,
)
from tests.http.doubles import KEY_RING, Http, assert_problem, problem

PATHS = ("/docs", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css", "/docs/start.js")


def test_its_paths_are_four() -> None:
    """A page, its script and the two files of Swagger UI; nothing else of the package is served."""
    assert sorted(swagger_responses()) == sorted(PATHS)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("with_keys", [True, False])
def test_it_is_open_as_the_document_is(path: str, with_keys: bool) -> None:  # noqa: FBT001 -- two cases
    """Whoever may read the document may read the page, with the dashboard's headers on caching."""
    with Http(keys=KEY_RING if with_keys else None) as http:
        document, reply = http.get("/openapi.json"), http.get(path)
        head, wrong = (http.request(method, path) for method in ("HEAD", "POST"))
    assert document.status_code == reply.status_code == head.status_code == 200
    assert int(head.headers["content-length"]) == len(reply.content)
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS_OF_LIBRARY
    expected = problem("method-not-allowed", "Method not allowed", 405, "this path takes GET, HEAD")
    assert_problem(wrong, expected)
    assert wrong.headers["allow"] == "GET, HEAD"


def test_it_lets_nothing_else_load() -> None:
    """The page asks for its own files alone, and its policy allows no inline code or style."""
    with Http() as http:
        page = http.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert re.findall(r"(?:https?:)?//[a-z]", page.text) == []
    assert re.findall(r"<script[^>]*>[^<]|<style| style=| on[a-z]+=", page.text) == []
    asked = {f"/{path}" for path in re.findall(r'(?:src|href)="(docs/[^"]+)"', page.text)}
    assert asked == set(PATHS) - {"/docs"}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_is_served_as_installed(name: str) -> None:
    """What a browser gets is, byte for byte, what the package's own record says it installed."""
    files = distribution(DISTRIBUTION).files or ()
    (recorded,) = [each.hash for each in files if each.name == name]
    assert recorded is not None
    with Http() as http:
        digest = hashlib.sha256(http.get(f"/docs/{name}").content).digest()
    assert (recorded.mode, recorded.value) == (
        "sha256",
        base64.urlsafe_b64encode(digest).decode().rstrip("="),
    )
