"""Tokens of an OpenID provider on a real release: counted by subject, whom nobody can read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from app.cli import run
from app.http.access.tokens import NOT_INSTALLED
from tests.builders.server.http_release import agreed
from tests.builders.server.issuer import AUDIENCE, Issuer
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from tests.builders.server.http_release import SmallRelease
    from tests.http.end_to_end.conftest import OpenedRelease

SUBJECTS = ("ada-lovelace", "charles-babbage")


def environ(issuer: str) -> dict[str, str]:
    """Return the settings of a provider as the environment has them."""
    settings = {"ISSUER": issuer, "AUDIENCE": AUDIENCE, "LIMIT": "1"}
    # Beyond loopback: tokens are a door, as a file of keys is.
    return {"CONCLAVE_SERVER__HOST": "192.0.2.1"} | {
        f"CONCLAVE_SERVER__OIDC__{name}": text for name, text in settings.items()
    }


def bearer(token: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token}"}


def asked(served: Served, token: str, number: int) -> int:
    """Ask a query with a token, and return the status."""
    return served.query(agreed(number), **bearer(token)).status_code


def usage(served: Served, issuer: Issuer) -> list[Mapping[str, Any]]:
    """Return what each subject was given, as an administrator reads it."""
    token = issuer.token(sub="grace-hopper", roles=["admin"])
    keys: list[Mapping[str, Any]] = served.get("/keys/usage", headers=bearer(token)).json()["keys"]
    return keys


def test_subjects_are_counted_and_limited_under_names_that_do_not_tell_them(
    opened: OpenedRelease,
) -> None:
    """Each has its limit, whatever token it comes with, and after a restart; no file has it."""
    release: SmallRelease = opened()
    with Issuer() as issuer:
        settings = release.settings(environ(issuer.address))
        with Served(settings) as served:
            ada, charles = (issuer.token(sub=subject) for subject in SUBJECTS)
            assert [asked(served, ada, number) for number in (1, 2)] == [200, 429]
            assert asked(served, issuer.token(sub=SUBJECTS[0], iat=1), 2) == 429
            assert asked(served, charles, 2) == 200
            given = usage(served, issuer)
        with Served(settings) as served:
            assert asked(served, ada, 3) == 429
            assert usage(served, issuer) == given
    assert [each["answers"] for each in given] == [1, 1]
    names = {each["name"] for each in given}
    assert len(names) == 2
    assert all(len(name) == len("oidc:") + 32 and name.startswith("oidc:") for name in names)
    written = b"".join(path.read_bytes() for path in release.folder.glob("conclave.db*"))
    assert not [subject for subject in SUBJECTS if subject.encode() in written]
    assert all(name.encode() in written for name in names)


def test_without_the_extra_a_server_does_not_start(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names the setting, and the exit code is 2."""
    release: SmallRelease = opened()
    for name, text in environ("https://accounts.example.com").items():
        monkeypatch.setenv(name, text)
    monkeypatch.setitem(sys.modules, "joserfc.jws", None)
    assert run(["serve", "--config", str(release.config)]) == 2
    assert capsys.readouterr().err == f"conclave: server.oidc: {NOT_INSTALLED}\n"
