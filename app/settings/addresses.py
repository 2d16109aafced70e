"""Addresses of other servers: which only this machine reaches, and which are safe to ask."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

HTTP_ADDRESS: Final = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")


def is_loopback(host: str) -> bool:
    """Return whether ``host``, a name or an address, is only reachable from this machine."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_http_address(text: str) -> bool:
    """Return whether a text is the address of an HTTP server, without a user or password in it."""
    return HTTP_ADDRESS.fullmatch(text) is not None


def is_secure_address(text: str) -> bool:
    """Return whether nobody on a network can answer in the place of an address.

    That is one of https, or one of http on loopback.
    """
    if not is_http_address(text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme == "https" or is_loopback(parts.hostname or "")
    except ValueError:
        return False
