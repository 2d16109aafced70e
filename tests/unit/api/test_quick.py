"""A request whose headers are decoded once says what Starlette's says."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from app.api.quick import QuickRequest

RAW = [
    (b"host", b"localhost:8000"),
    (b"accept", b"application/json"),
    (b"accept", b"text/html"),
    (b"x-name", "é".encode("latin-1")),
]
SCOPE = {"type": "http", "method": "POST", "path": "/query", "headers": RAW}


@pytest.mark.parametrize("name", ["host", "Host", "accept", "x-name", "absent"])
def test_looks_headers_up_as_starlette_does(name: str) -> None:
    """The first of several counts, names are in any case, and what is absent is absent."""
    quick, plain = QuickRequest(SCOPE).headers, Request(SCOPE).headers
    assert quick.get(name) == plain.get(name)
    assert quick.getlist(name) == plain.getlist(name)
    assert (name in quick) == (name in plain)
    assert quick.get(name, "other") == plain.get(name, "other")


def test_holds_the_same_headers() -> None:
    """As a mapping both are equal, and what is looked up and missing raises."""
    quick = QuickRequest(SCOPE).headers
    assert quick == Request(SCOPE).headers
    assert list(quick.items()) == list(Request(SCOPE).headers.items())
    with pytest.raises(KeyError):
        quick["absent"]
