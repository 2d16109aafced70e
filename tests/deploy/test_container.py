"""The image's recipe and the compose file are clean, and say what the documents say.

That the image builds and runs is shown by ``.ci/check-image``, which needs a container
engine: ``make image``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.promtool import ROOT
from tests.tidy.sources import repository_files

DOCKERFILE = ROOT / "Dockerfile"
COMPOSE = ROOT / "docker-compose.yml"
GRPC_COMPOSE = ROOT / "deploy" / "grpc" / "compose.yml"
# A version to its last part, so that the same recipe makes the same image; PostgreSQL's has two.
PINNED = re.compile(r"(postgres:\d+\.\d+|[a-z/]+:v?\d+\.\d+\.\d+)[\w.-]*")


def hadolint(path: Path) -> subprocess.CompletedProcess[str]:
    """Lint a Dockerfile."""
    command = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert command is not None
    return subprocess.run([command, str(path)], capture_output=True, text=True, check=False)


def check_compose(path: Path) -> subprocess.CompletedProcess[str]:
    """Hold a compose file against the schema of the Compose specification."""
    options = ["--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *options],
        capture_output=True,
        text=True,
        check=False,
    )


def services() -> dict[str, Any]:
    """Return the services of the compose file, merged."""
    return dict(yaml.safe_load(COMPOSE.read_text("utf-8"))["services"])


def test_the_dockerfile_is_clean() -> None:
    """Hadolint has nothing to say."""
    linted = hadolint(DOCKERFILE)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_a_careless_dockerfile_is_seen(tmp_path: Path) -> None:
    """The linter has power: a base without a version is named."""
    careless = tmp_path / "Dockerfile"
    careless.write_text("FROM python\n", encoding="utf-8")
    assert "DL3006" in hadolint(careless).stdout


def test_the_compose_file_is_of_its_schema(tmp_path: Path) -> None:
    """The schema takes the shipped file, and refuses one with a misspelt member."""
    checked = check_compose(COMPOSE)
    assert checked.returncode == 0, checked.stdout
    misspelt = tmp_path / "docker-compose.yml"
    misspelt.write_text(COMPOSE.read_text("utf-8").replace("read_only", "readonly"), "utf-8")
    assert check_compose(misspelt).returncode == 1


def test_grpc_is_published_where_it_is_configured() -> None:
    """The file that adds gRPC sets the port that it publishes, of services that are there."""
    assert check_compose(GRPC_COMPOSE).returncode == 0
    added = yaml.safe_load(GRPC_COMPOSE.read_text("utf-8"))["services"]
    assert added.keys() <= services().keys()
    for name, service in added.items():
        port = service["environment"]["CONCLAVE_SERVER__GRPC_PORT"]
        assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
        assert port not in str(services()[name])
    assert port not in DOCKERFILE.read_text("utf-8")


def test_every_image_is_pinned() -> None:
    """Both stages start from one base of a full version, and so do the other services."""
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text("utf-8"), re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1
    others = [each["image"] for each in services().values() if "build" not in each]
    for image in (*bases, *others):
        assert PINNED.fullmatch(image)


def test_the_image_is_nobody_and_listens_everywhere() -> None:
    """A number for its user, its ledger's volume, and the address that a container needs."""
    text = DOCKERFILE.read_text("utf-8")
    last = text.rpartition("FROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert re.search(r"^VOLUME /var/lib/conclave$", last, re.MULTILINE)
    assert "CONCLAVE_SERVER__HOST=0.0.0.0" in last
    assert "HEALTHCHECK" in last


def test_the_image_has_the_examples_and_no_records_beside_them() -> None:
    """Every example of the repository is let in by its name, and a table beside them is not."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    let_in = [line.removeprefix("!") for line in lines if line.startswith("!examples/")]
    assert "COPY examples " in DOCKERFILE.read_text("utf-8").rpartition("FROM ")[2]
    for path in (*repository_files(), ROOT / "examples" / "train.csv"):
        place = path.relative_to(ROOT)
        if place.parts[0] == "examples":
            assert any(map(place.match, let_in)) == (place.name != "train.csv"), place


NAMES = ("demo", "release", "init", "keys", "backup", "prometheus", "grafana")


@pytest.mark.parametrize("name", NAMES)
def test_every_service_may_do_as_little_as_it_needs(name: str) -> None:
    """A root that is read-only, no capability, no new privilege, and loopback on the host."""
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_no_command_starts_two_services_on_one_port() -> None:
    """Each has a profile, and two that publish one port are never of one profile."""
    published = [
        (profile, port)
        for service in services().values()
        for profile in service["profiles"]
        for port in service.get("ports", ())
    ]
    assert len(published) == len(set(published)) == 5


def test_what_runs_once_reaches_nobody() -> None:
    """Of the tools and the copies none has a network, and keys and copies are in volumes."""
    found = services()
    assert all(found[name]["network_mode"] == "none" for name in ("init", "keys", "backup"))
    assert found["init"]["volumes"] == [".:/work:ro"]
    folders = {volume.split(":")[1] for volume in found["backup"]["volumes"][2:]}
    installed = DOCKERFILE.read_text("utf-8").partition("install -d -o conclave ")[2]
    owned = set(re.findall(r"/var/lib/\S+", installed.partition("\n\n")[0]))
    assert folders | {"/var/lib/conclave-keys", "/var/lib/conclave-head"} == owned


def test_what_compose_mounts_is_there() -> None:
    """Every file of the repository that a service mounts exists."""
    mounted = [
        volume.partition(":")[0]
        for service in services().values()
        for volume in service.get("volumes", ())
    ]
    shipped = [path for path in mounted if path.startswith("./deploy")]
    assert len(shipped) == 6
    assert all((ROOT / path).exists() for path in shipped)
