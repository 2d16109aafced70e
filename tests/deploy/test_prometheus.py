"""A real Prometheus scrapes a real server: names, units, rules and the dashboard's queries."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease, agreed, split
from tests.builders.server.server_process import serving
from tests.deploy.dashboard import filled_in
from tests.deploy.promtool import PROMETHEUS, program, promtool
from tests.deploy.test_alerts import NAMES
from tests.http.doubles import Http

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS_MAX = 60.0
PAUSE_SECONDS = 0.1
# Of a release that neither refused anything, nor stated a composed budget, nor was asked
# again within the seconds of a test.
QUIET = ("conclave_refusals_total",)


def test_names_and_units_follow_the_conventions() -> None:
    """`promtool check metrics` has nothing to say about a scrape."""
    with Http() as http:
        http.ask([20, None])
        http.service.composed = {"epsilon": 2.0, "delta": 2e-6, "releases": 2}
        text = http.get("/metrics").text
    checked = promtool("check", "metrics", stdin=text)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_a_name_against_the_conventions_is_seen() -> None:
    """The check has power: a counter without its ending is named."""
    text = "# HELP conclave_asked Asked\n# TYPE conclave_asked counter\nconclave_asked 1\n"
    assert "_total" in promtool("check", "metrics", stdin=text).stderr


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[httpx.Client]:
    """Scrape a server ten times a second, by the shipped configuration, and ask Prometheus."""
    config = yaml.safe_load((PROMETHEUS / "demo.yml").read_text("utf-8"))
    config["global"] = {"scrape_interval": "100ms", "evaluation_interval": "1s"}
    config["rule_files"] = [str(PROMETHEUS / "alerts.yml")]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
            "--log.level=error",
        ],
        stdin=subprocess.DEVNULL,
    )
    try:
        with httpx.Client(base_url=f"http://{address}", timeout=SECONDS_MAX) as client:
            yield client
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)


def ask(client: httpx.Client, query: str) -> list[Any]:
    """Return the series that a query has now; none while Prometheus starts."""
    try:
        reply = client.get("/api/v1/query", params={"query": query})
    except httpx.TransportError:
        return []
    if reply.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return []
    assert reply.json()["status"] == "success", reply.text
    return list(reply.json()["data"]["result"])


def wait_for(client: httpx.Client, query: str) -> list[Any]:
    """Return the series of a query as soon as it has one."""
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := ask(client, query)):
        assert time.monotonic() < deadline, query
        time.sleep(PAUSE_SECONDS)
    return found


def test_prometheus_has_what_rules_and_panels_ask_for(tmp_path: Path) -> None:
    """Every panel has a series of a real server, every rule is in force, and none fires."""
    changes = {"answers": {"queries": "1000", "cutoff": "30"}, "privacy": {"epsilon": "12"}}
    release = SmallRelease(tmp_path, changes).write(asked=Asked(2, 0))
    with (
        serving(release.config) as server,
        prometheus(tmp_path, server.address.removeprefix("http://")) as client,
        httpx.Client(base_url=server.address, timeout=SECONDS_MAX) as asking,
    ):
        wait_for(client, "conclave_ledger_sequence")
        for features in (agreed(1), split(1), agreed(2)):
            assert asking.post("/query", json={"features": features}).status_code == 200
        wait_for(client, "conclave_answers_total == 3")
        for query in filled_in():
            if not any(name in query for name in QUIET):
                wait_for(client, query.replace("[1h]", "[10s]"))
        rules = client.get("/api/v1/rules").json()["data"]["groups"][0]["rules"]
        assert [(rule["name"], rule["health"]) for rule in rules] == [
            (name, "ok") for name in NAMES
        ]
        assert ask(client, 'ALERTS{alertstate="firing"}') == []
        server.terminate()
        wait_for(client, 'ALERTS{alertname="ConclaveDown"}')
