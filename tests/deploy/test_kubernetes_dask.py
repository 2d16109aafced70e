"""The manifests of a cluster for openings: their schemas, and that nobody else gets in."""

from __future__ import annotations

import kubernetes_validate
import pytest
import yaml

from tests.deploy.promtool import ROOT
from tests.deploy.test_kubernetes import NOBODY, VERSIONS

MANIFESTS = list(
    yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / "dask.yaml").read_text("utf-8"))
)
PODS = {
    each["metadata"]["name"]: each["spec"]["template"]["spec"]
    for each in MANIFESTS
    if each["kind"] == "Deployment"
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_of_its_schema(version: str) -> None:
    """No unknown member and no wrong type, by the strict schemas of two versions."""
    for manifest in MANIFESTS:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", ["conclave-scheduler", "conclave-worker"])
def test_members_speak_by_certificates_and_write_nothing(name: str) -> None:
    """Encryption is required, no dashboard shows sizes, and nothing goes to a disk."""
    pod = PODS[name]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsUser"] == NOBODY
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "--no-dashboard" in container["command"]
    assert ("--memory-limit" in container["command"]) == (name == "conclave-worker")
    (settings,) = [each["data"] for each in MANIFESTS if each["kind"] == "ConfigMap"]
    assert settings["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "true"
    (policy,) = [each["spec"] for each in MANIFESTS if each["kind"] == "NetworkPolicy"]
    assert len(policy["ingress"]) == 1
