"""The Kubernetes manifests are of Kubernetes' own schemas, and keep what a ledger needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

from app.settings.settings import load_settings
from tests.deploy.promtool import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MANIFESTS = ROOT / "deploy" / "kubernetes" / "conclave.yaml"
VERSIONS = ("1.29", "1.37")
NOBODY = 10001


def manifests() -> list[dict[str, Any]]:
    """Return every object, in order."""
    return list(yaml.safe_load_all(MANIFESTS.read_text("utf-8")))


def of_kind(kind: str) -> dict[str, Any]:
    """Return the one object of a kind."""
    (found,) = [each for each in manifests() if each["kind"] == kind]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_of_its_schema(version: str) -> None:
    """No unknown member and no wrong type, by the strict schemas of two versions."""
    for manifest in manifests():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_an_unknown_member_is_seen() -> None:
    """The check has power: a misspelt member of a container is refused."""
    deployment = of_kind("Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


def test_one_server_has_the_ledger() -> None:
    """One replica, which ends before the next begins, and a volume that one pod may mount."""
    spec = of_kind("Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    claims = [each for each in manifests() if each["kind"] == "PersistentVolumeClaim"]
    assert [each["spec"]["accessModes"] for each in claims] == [["ReadWriteOncePod"]] * 2


def test_the_container_may_do_as_little_as_it_needs() -> None:
    """Not root, no capability, a root that is read-only, no token, and no way out."""
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (
        True,
        NOBODY,
    )
    assert pod["automountServiceAccountToken"] is False
    assert of_kind("NetworkPolicy")["spec"]["egress"] == []
    assert pod["terminationGracePeriodSeconds"] > 10


def test_probes_ask_the_routes_that_there_are() -> None:
    """Alive and started are asked of /healthz, ready of /readyz; none needs a key."""
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    paths = {
        name: container[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}


def test_every_mount_has_its_volume_and_every_volume_its_object() -> None:
    """What is mounted is declared, and the objects that are not made here are named at the top."""
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    here = {(each["kind"], each["metadata"]["name"]) for each in manifests()}
    head = MANIFESTS.read_text("utf-8").partition("apiVersion")[0]
    for volume in volumes.values():
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            assert ("PersistentVolumeClaim", claim) in here
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in here
        if "secret" in volume:
            assert f"generic {volume['secret']['secretName']} " in head


def test_the_configuration_is_one(tmp_path: Path) -> None:
    """What the config map holds loads, with the environment of the container."""
    config = tmp_path / "conclave.toml"
    config.write_text(of_kind("ConfigMap")["data"]["conclave.toml"], encoding="utf-8")
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    settings = load_settings(config, environment)
    assert str(settings.server.keys_file) == "/run/secrets/conclave/keys.toml"
    assert str(settings.ledger.head_file) == "/var/lib/conclave-head/ledger.head"
