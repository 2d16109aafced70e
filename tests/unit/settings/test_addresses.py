"""Which addresses only this machine reaches, and which nobody else can answer for."""

from __future__ import annotations

import pytest

from app.settings.addresses import is_loopback, is_secure_address


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("LocalHost.", True),
        ("0.0.0.0", False),  # noqa: S104 -- what must be refused
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("example.com", False),
        ("localhost.example.com", False),
    ],
)
def test_knows_what_only_this_machine_reaches(host: str, expected: bool) -> None:  # noqa: FBT001 -- a table
    """Addresses and names of loopback, and nothing that could be another machine's."""
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://accounts.example.com", True),
        ("https://accounts.example.com/realms/one", True),
        ("http://127.0.0.1:8080/realms/one", True),
        ("http://localhost", True),
        ("http://[::1]:8080", True),
        ("http://accounts.example.com", False),
        ("http://localhost.example.com", False),
        ("http://user@127.0.0.1", False),
        ("http://[", False),
        ("ftp://127.0.0.1", False),
        ("accounts.example.com", False),
    ],
)
def test_knows_where_nobody_else_can_answer(address: str, expected: bool) -> None:  # noqa: FBT001 -- a table
    """Any host by https, and loopback by http."""
    assert is_secure_address(address) is expected
