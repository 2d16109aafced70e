"""Addresses of other servers: whether they are on this machine, and whether they are safe."""

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
    """Return whether an address is safe from impersonation on a network.

    That is one of https, or one of http on loopback.
    """
    if not is_http_address(text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme == "https" or is_loopback(parts.hostname or "")
    except ValueError:
        return False
