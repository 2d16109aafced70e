"""The manifests of three servers and their PostgreSQL: their schemas, and what replicas need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

from app.settings.settings import load_settings
from tests.deploy.promtool import ROOT
from tests.deploy.test_kubernetes import NOBODY, VERSIONS

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "deploy" / "kubernetes"
FILES = ("replicas.yaml", "postgresql.yaml")
DATABASE = {"conclave-database": "true"}


def manifests(name: str) -> list[dict[str, Any]]:
    """Return every object of a file, in order."""
    return list(yaml.safe_load_all((FOLDER / name).read_text("utf-8")))


def of_kind(name: str, kind: str) -> dict[str, Any]:
    """Return the one object of a kind in a file."""
    (found,) = [each for each in manifests(name) if each["kind"] == kind]
    return found


def pods(name: str) -> list[dict[str, Any]]:
    """Return every pod that a file describes."""
    templates = (each["spec"].get("template") for each in manifests(name) if "spec" in each)
    return [template["spec"] for template in templates if template]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FILES)
def test_every_object_is_of_its_schema(name: str, version: str) -> None:
    """No unknown member and no wrong type, by the strict schemas of two versions."""
    for manifest in manifests(name):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_an_update_takes_no_server_away_before_another_is_ready() -> None:
    """Three servers, rolled one by one, drained one at a time, and apart where there is room."""
    spec = of_kind("replicas.yaml", "Deployment")["spec"]
    assert spec["replicas"] == 3
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }
    budget = of_kind("replicas.yaml", "PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], budget["selector"]) == (1, spec["selector"])
    pod = spec["template"]["spec"]
    (apart,) = pod["affinity"]["podAntiAffinity"].popitem()[1]
    assert apart["podAffinityTerm"]["labelSelector"] == spec["selector"]
    (container,) = pod["containers"]
    (wait,) = container["lifecycle"]["preStop"]["exec"]["command"][1:]
    # What is asked of a server before the balancer knows that it ends, and its drain.
    assert pod["terminationGracePeriodSeconds"] > int(wait) + 10
    paths = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "startup")}
    assert paths == {"liveness": "/healthz", "startup": "/healthz"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize("name", FILES)
def test_every_container_may_do_as_little_as_it_needs(name: str) -> None:
    """Not root, no capability, a root that is read-only, and no token."""
    for pod in pods(name):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        if name == "replicas.yaml":
            assert pod["securityContext"]["runAsUser"] == NOBODY


def test_servers_never_see_the_owner_of_the_tables() -> None:
    """What prepares has the owner's address, and what serves the other one, each in a file."""
    secrets = {}
    for kind in ("Job", "Deployment"):
        pod = of_kind("replicas.yaml", kind)["spec"]["template"]["spec"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        (container,) = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
        secrets[kind] = volumes["database"]["secret"]["secretName"]
        environment = {each["name"]: each["value"] for each in container["env"]}
        assert environment["CONCLAVE_LEDGER__URL_FILE"] == "/run/secrets/database/url"
    assert secrets == {"Job": "conclave-owner", "Deployment": "conclave-server"}
    (job,) = of_kind("replicas.yaml", "Job")["spec"]["template"]["spec"]["containers"]
    assert job["args"][:2] == ["ledger", "prepare"]
    assert job["args"][-2:] == ["--grant", "conclave_server"]


def test_what_is_not_made_here_is_named_at_the_top() -> None:
    """Secrets and configurations that no file has are in the commands before the first object."""
    heads = "".join((FOLDER / name).read_text("utf-8").partition("apiVersion")[0] for name in FILES)
    here = {(each["kind"], each["metadata"]["name"]) for name in FILES for each in manifests(name)}
    for volume in (volume for name in FILES for pod in pods(name) for volume in pod["volumes"]):
        if "secret" in volume:
            assert f"secret generic {volume['secret']['secretName']} " in heads
        if "configMap" in volume:
            name = volume["configMap"]["name"]
            assert ("ConfigMap", name) in here or f"configmap {name} " in heads
    for path in ("deploy/postgresql/make-secrets", "deploy/postgresql/roles.sh"):
        assert path in heads
        assert (ROOT / path).exists()


def test_only_servers_reach_the_database() -> None:
    """The label that lets a pod connect is that of the servers and of what prepares."""
    policy = of_kind("postgresql.yaml", "NetworkPolicy")["spec"]
    (source,) = policy["ingress"][0]["from"]
    assert (source["podSelector"]["matchLabels"], policy["egress"]) == (DATABASE, [])
    for kind in ("Job", "Deployment"):
        labels = of_kind("replicas.yaml", kind)["spec"]["template"]["metadata"]["labels"]
        assert labels.items() >= DATABASE.items()
    assert of_kind("replicas.yaml", "NetworkPolicy")["spec"]["podSelector"] == {
        "matchLabels": DATABASE
    }
    stateful = of_kind("postgresql.yaml", "StatefulSet")["spec"]
    assert (stateful["replicas"], stateful["selector"]) == (1, policy["podSelector"])


def test_the_configuration_is_one(tmp_path: Path) -> None:
    """What the config map holds loads, with the address that a secret gives."""
    config = tmp_path / "conclave.toml"
    data = of_kind("replicas.yaml", "ConfigMap")["data"]
    config.write_text(data["conclave.toml"], encoding="utf-8")
    address = tmp_path / "url"
    address.write_text("postgresql+psycopg://conclave_server:x@conclave-postgresql/conclave\n")
    settings = load_settings(config, {"CONCLAVE_LEDGER__URL_FILE": str(address)})
    assert settings.ledger_url == address.read_text().strip()
