"""A page that shows the OpenAPI document by Swagger UI, with all files from this server.

Two files of the Swagger UI package are served; its Python code is not used, and a page of this
project starts the scripts.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.http.dashboard.page import HEADERS, POLICY, file_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

PAGE: Final = "/docs"
DISTRIBUTION: Final = "fastapi-offline"
LIBRARY: Final = ("swagger-ui-bundle.js", "swagger-ui.css")
"""Swagger UI 5, under the Apache License 2.0."""

# It writes HTML itself, which the dashboard never does: of this server's own document.
HEADERS_OF_LIBRARY: Final = {**HEADERS, "content-security-policy": POLICY}


@cache
def swagger_responses() -> Mapping[str, Response]:
    """Return the reply to each path of the Swagger UI page."""
    ours = resources.files("app.http.openapi").joinpath("swagger")
    installed = distribution(DISTRIBUTION)
    library = {
        name: Path(str(installed.locate_file(f"fastapi_offline/static/{name}"))).read_bytes()
        for name in LIBRARY
    }
    below = library | {"start.js": ours.joinpath("start.js").read_bytes()}
    index = ours.joinpath("index.html").read_bytes()
    return {PAGE: file_response("index.html", index, HEADERS_OF_LIBRARY)} | {
        f"{PAGE}/{name}": file_response(name, content, HEADERS_OF_LIBRARY)
        for name, content in below.items()
    }
