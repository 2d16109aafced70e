"""HTTP replies with the dashboard's files; the page loads nothing from other web sites."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = "/dashboard/"
MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NO_HTML_FROM_TEXT: Final = "; require-trusted-types-for 'script'; trusted-types 'none'"
HEADERS: Final[Mapping[str, str]] = {
    # Asked again at every visit: a new version of the server comes with its own page.
    "cache-control": "no-cache",
    "content-security-policy": POLICY + NO_HTML_FROM_TEXT,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def page_responses() -> dict[str, Response]:
    """Return the HTTP reply for each path of the dashboard, made once when the server starts."""
    files = resources.files("app.http.dashboard").joinpath("static")
    return {
        _path(file.name): file_response(file.name, file.read_bytes())
        for file in sorted(files.iterdir(), key=lambda each: each.name)
        if _suffix(file.name) in MEDIA_TYPES
    }


def _path(name: str) -> str:
    return "/" if name == "index.html" else FOLDER + name


def file_response(name: str, content: bytes, headers: Mapping[str, str] = HEADERS) -> Response:
    """Return the reply that serves one file of the dashboard."""
    return Response(content, media_type=MEDIA_TYPES[_suffix(name)], headers=headers)


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
