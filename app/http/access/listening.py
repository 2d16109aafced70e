"""Where a server without keys may listen."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.settings.settings import Settings


def is_loopback(host: str) -> bool:
    """Return whether ``host``, a name or an address, is only reachable from this machine."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def require_safe_binding(settings: Settings, *, is_demo: bool) -> None:
    """Refuse to serve private data without keys where other machines can connect.

    Raises:
        ConfigurationError: says what to mount.

    """
    if is_demo or settings.server.keys_file is not None or is_loopback(settings.server.host):
        return
    raise ConfigurationError(
        "server.keys_file",
        f"not set, and server.host {settings.server.host!r} can be reached from other machines; "
        "mount a keys file (`conclave keys add --role query --name NAME` writes one) and set "
        "CONCLAVE_SERVER__KEYS_FILE to its path, or listen on 127.0.0.1",
    )
