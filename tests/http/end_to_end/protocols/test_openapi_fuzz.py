"""No request, good or bad, gets a 5xx or a reply that the OpenAPI document does not have.

Real servers in every phase are sent cases that are made from their own document: 800 in
all in ``make test``, and 8,000 in ``make audit``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from app.cli import run
from tests.builders.server.http_release import SmallRelease, agreed, split
from tests.builders.server.server_process import serving
from tests.http.fuzzing import Fuzzed, fuzz

if TYPE_CHECKING:
    from tests.builders.server.server_process import ServerProcess
    from tests.http.end_to_end.conftest import OpenedRelease

SECONDS_MAX = 60
# Together 800; with fewer some status that is wanted does not come.
SHORT = {"ensemble": 400, "halted": 100, "classifier": 100, "keys": 200}
# What one case in a thousand meets is missed by 8,000 cases with probability exp(-8), 3e-4.
LONG_FACTOR = 10
QUERY = {"features": split(1_000)}
ROOM = {"queries": "20000"}
CLASSIFIER_ONLY = {"relabel": "0", "answers": "0", "classifier": "1"}
FITTING = {
    "type": "array",
    "prefixItems": [{"type": ["number", "null"]}, {"enum": ["common", "rare", "other", None]}],
    "minItems": 2,
    "maxItems": 2,
}
Scene = Callable[["OpenedRelease", int, pytest.CaptureFixture[str]], Fuzzed]


def document_of(server: ServerProcess, headers: dict[str, str]) -> dict[str, Any]:
    """Return a server's own document."""
    reply = httpx.get(f"{server.address}/openapi.json", headers=headers, timeout=SECONDS_MAX)
    document: dict[str, Any] = reply.json()
    return narrowed(document, "members")


def narrowed(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Let more of the cases fit this release: its name where one is wanted, and its features."""
    for name_of_schema in ("Query", "QueryLine"):
        members = document["components"]["schemas"][name_of_schema]["properties"]
        members["features"] = {"anyOf": [FITTING, members["features"]]}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if "{name}" in path and parameter["name"] == "name":
                    parameter["schema"] = {"enum": [name, "other"]}
    return document


def ask(server: ServerProcess, vector: object) -> int:
    """Ask one query, and return the status."""
    body = {"features": vector}
    return httpx.post(f"{server.address}/query", json=body, timeout=SECONDS_MAX).status_code


def fuzzed_in(
    release: SmallRelease, cases: int, number: int, prepare: Callable[[ServerProcess], object]
) -> Fuzzed:
    """Serve a release, prepare it, and fuzz it without keys."""
    with serving(release.config) as server:
        prepare(server)
        document = document_of(server, {})
        return fuzz(server.address, document, query=QUERY, cases=cases, number=number, headers={})


def in_ensemble(opened: OpenedRelease, cases: int, capsys: pytest.CaptureFixture[str]) -> Fuzzed:
    """Fuzz while the ensemble answers."""
    del capsys
    fuzzed = fuzzed_in(opened(answers=ROOM), cases, 1_000, lambda _: None)
    assert fuzzed.statuses.get(("POST /query", 200)), fuzzed.statuses
    return fuzzed


def in_halt(opened: OpenedRelease, cases: int, capsys: pytest.CaptureFixture[str]) -> Fuzzed:
    """Fuzz a release that has had its last unstable answer."""
    del capsys

    def halt(server: ServerProcess) -> None:
        for number in range(40):
            if ask(server, split(number)) == 410:
                return
        pytest.fail("it did not halt")

    fuzzed = fuzzed_in(opened(answers=ROOM), cases, 2_000, halt)
    assert fuzzed.statuses.get(("POST /query", 410)), fuzzed.statuses
    return fuzzed


def after_the_switch(
    opened: OpenedRelease, cases: int, capsys: pytest.CaptureFixture[str]
) -> Fuzzed:
    """Fuzz a published classifier."""
    del capsys
    release = opened(shares=CLASSIFIER_ONLY)
    fuzzed = fuzzed_in(release, cases, 3_000, lambda server: ask(server, agreed(1)))
    assert fuzzed.statuses.get(("GET /classifier", 200)), fuzzed.statuses
    return fuzzed


def with_keys(opened: OpenedRelease, cases: int, capsys: pytest.CaptureFixture[str]) -> Fuzzed:
    """Fuzz with a key at its limit, one of another role, and none."""
    release = opened()
    file = release.folder / "keys.toml"
    secrets = []
    for arguments in (["query", "--limit", "0"], ["read"], ["admin", "--unstable-limit", "1"]):
        capsys.readouterr()
        named = ["--name", arguments[0], "--keys-file", str(file)]
        assert run(["keys", "add", "--role", *arguments, *named]) == 0
        secrets.append(capsys.readouterr().out.strip())
    total = Fuzzed()
    with serving(release.config, environ={"CONCLAVE_SERVER__KEYS_FILE": str(file)}) as server:
        document = document_of(server, bearer(secrets[2]))
        for number, secret in enumerate([*secrets, "nobody"]):
            part = fuzz(
                server.address,
                document,
                query=QUERY,
                cases=cases // 4,
                number=4_000 + number * 500,
                headers=bearer(secret),
            )
            for (operation, status), count in part.statuses.items():
                for _ in range(count):
                    total.note(operation, status)
    for status in (401, 403, 429):
        assert total.of_status(status), total.statuses
    return total


def bearer(secret: str) -> dict[str, str]:
    """Return the header of a key."""
    return {"Authorization": f"Bearer {secret}"}


SCENES: dict[str, Scene] = {
    "ensemble": in_ensemble,
    "halted": in_halt,
    "classifier": after_the_switch,
    "keys": with_keys,
}


@pytest.mark.parametrize("scene", SCENES)
def test_eight_hundred_requests_get_documented_replies(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str], scene: str
) -> None:
    """No 5xx, no undocumented status, type, header or body."""
    fuzzed = SCENES[scene](opened, SHORT[scene], capsys)
    assert fuzzed.count >= SHORT[scene]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", SCENES)
def test_eight_thousand_requests_get_documented_replies(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str], scene: str
) -> None:
    """The same, ten times as often."""
    cases = LONG_FACTOR * SHORT[scene]
    assert SCENES[scene](opened, cases, capsys).count >= cases


def test_the_numbers_are_those_that_are_promised() -> None:
    """800 cases in all, and 8,000 in the audit."""
    assert sum(SHORT.values()) == 800
    assert LONG_FACTOR * sum(SHORT.values()) == 8_000
