"""Checks of network addresses: whether they are local, and whether they are secure."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

HTTP_ADDRESS: Final = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")


def is_loopback(host: str) -> bool:
    """Return whether ``host``, a name or an address, is reachable from this machine only."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_http_address(text: str) -> bool:
    """Return whether a text is an HTTP URL without a user name or password."""
    return HTTP_ADDRESS.fullmatch(text) is not None


def is_secure_address(text: str) -> bool:
    """Return whether a URL uses HTTPS, or uses HTTP and names this machine (loopback)."""
    if not is_http_address(text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme == "https" or is_loopback(parts.hostname or "")
    except ValueError:
        return False
