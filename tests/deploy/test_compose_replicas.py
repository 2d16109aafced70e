"""The profile of several servers: what each service sees, and the files that it mounts.

That it works is shown by ``.ci/check-replicas``, which needs a container engine: ``make
image-replicas``.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.engine import make_url

from tests.deploy.promtool import ROOT
from tests.deploy.test_container import services

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = ("prepare", "replica", "balancer", "postgresql")
BALANCER = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
MAKE_SECRETS = ROOT / "deploy" / "postgresql" / "make-secrets"


@pytest.mark.parametrize("name", PROFILE)
def test_every_service_may_do_as_little_as_it_needs(name: str) -> None:
    """A root that is read-only, no capability, no new privilege, and one port on loopback."""
    service = services()[name]
    assert service["profiles"] == ["postgresql"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    ports = ["127.0.0.1:8000:8000"] if name == "balancer" else None
    assert service.get("ports") == ports


def test_each_service_sees_the_secrets_that_it_needs() -> None:
    """The owner's address is for what prepares, and no server can change a table."""
    seen = {name: services()[name].get("secrets", []) for name in PROFILE}
    assert seen == {
        "prepare": ["owner_url"],
        "replica": ["server_url"],
        "balancer": [],
        "postgresql": ["postgres_password", "owner_password", "server_password"],
    }
    for name, address in (("prepare", "owner_url"), ("replica", "server_url")):
        environment = services()[name]["environment"]
        assert environment["CONCLAVE_LEDGER__URL_FILE"] == f"/run/secrets/{address}"


def test_servers_start_on_tables_that_are_prepared() -> None:
    """The database is healthy, then the tables are made and granted, then three servers start."""
    prepare, replica = services()["prepare"], services()["replica"]
    assert prepare["depends_on"] == {"postgresql": {"condition": "service_healthy"}}
    assert replica["depends_on"] == {"prepare": {"condition": "service_completed_successfully"}}
    assert prepare["command"][-2:] == ["--grant", "conclave_server"]
    assert (replica["deploy"], replica["stop_grace_period"]) == ({"replicas": 3}, "15s")
    assert "healthcheck" in services()["postgresql"]
    assert "healthcheck" in services()["balancer"]


def test_the_balancer_waits_longer_than_a_reply_and_asks_what_there_is() -> None:
    """Its time-outs are above those of the switch and of events, and it asks for /readyz."""
    text = BALANCER.read_text("utf-8")
    limits = {
        side: int(re.findall(rf"timeout {side} (\d+)s", text)[0]) for side in ("client", "server")
    }
    assert min(limits.values()) > 30 + 15
    assert "option httpchk GET /readyz" in text
    assert re.search(r"server-template replica \S+ replica:8000$", text, re.MULTILINE)
    assert "retry-on conn-failure empty-response 503" in text
    checked = services()["balancer"]["healthcheck"]["test"][-1]
    assert re.findall(r"monitor-uri (\S+)", text)[0] in checked


def test_secrets_are_drawn_and_addresses_made_of_them(tmp_path: Path) -> None:
    """Each address has a password of its own, in a folder for its owner that was not there."""
    folder = tmp_path / "secrets"
    assert subprocess.run([MAKE_SECRETS, folder, "db"], check=False).returncode == 0
    assert folder.stat().st_mode & 0o777 == 0o700
    passwords = {role: (folder / f"{role}.password").read_text() for role in ("owner", "server")}
    assert len(set(passwords.values())) == 2
    for role, password in passwords.items():
        url = make_url((folder / f"{role}.url").read_text().strip())
        assert (url.username, url.password) == (f"conclave_{role}", password)
        assert (url.host, url.database, len(password)) == ("db", "conclave", 48)
    again = subprocess.run([MAKE_SECRETS, folder], capture_output=True, check=False)
    assert again.returncode != 0
