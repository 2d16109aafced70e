"""The dashboard's reply, made once: the file and a policy that lets nothing else load."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources

from starlette.responses import Response


def page_response() -> Response:
    """Return the reply to ``GET /``; it holds no number and may be sent many times."""
    page = resources.files("app.dashboard").joinpath("static/index.html").read_text("utf-8")
    headers = {
        "cache-control": "no-cache",
        "content-security-policy": _policy(page),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    return Response(page, media_type="text/html", headers=headers)


def _policy(page: str) -> str:
    """Allow the page's own script and style, by their hashes, and requests to this server."""
    script, style = _hash_of("script", page), _hash_of("style", page)
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash_of(tag: str, page: str) -> str:
    inline = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
    digest = hashlib.sha256("".join(inline).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
