"""The shipped dashboard is one that Grafana knows, and asks for what there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.deploy.dashboard import DASHBOARD, queries
from tests.deploy.promtool import ROOT, unknown_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 24


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Yield where a document lost or changed something on its way through Grafana's types."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from lost(value, kept.get(key, f"no {key}"), f"{path}/{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, (before, after) in enumerate(zip(given, kept, strict=True)):
            yield from lost(before, after, f"{path}/{index}")
    elif given != kept:
        yield path


def through_types(document: dict[str, Any]) -> dict[str, Any]:
    """Read a dashboard into Grafana's own types, panels and options, and write it again."""
    plugins.register_default_plugins()
    written = encoder.JSONEncoder(sort_keys=True).encode(Dashboard.from_json(document))
    return dict(json.loads(written))


def test_grafana_knows_every_member() -> None:
    """Nothing is lost or changed on the way through the types of Grafana's own library."""
    document = json.loads(DASHBOARD.read_text("utf-8"))
    assert list(lost(document, through_types(document))) == []


@pytest.mark.parametrize("name", ["titel", "fieldConfigs", "option"])
def test_a_member_that_grafana_does_not_know_is_seen(name: str) -> None:
    """The check has power: a misspelt member of a panel is lost, and found."""
    document = json.loads(DASHBOARD.read_text("utf-8"))
    document["panels"][1][name] = "x"
    assert list(lost(document, through_types(document))) == [f"/panels/1/{name}"]


def test_every_query_asks_for_what_a_scrape_has() -> None:
    """No panel and no variable names a series, label or value that is not there."""
    asked = queries()
    assert len(asked) > 20
    assert [part for query in asked for part in unknown_parts(query)] == []


def test_panels_lie_beside_each_other() -> None:
    """Every panel has a number and a title of its own, and covers no other."""
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    covered: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert not cells & covered
        assert at["x"] + at["w"] <= WIDTH
        covered |= cells


def test_compose_mounts_what_grafana_is_told_to_read() -> None:
    """The provisioning names the data source and the folder that the compose file mounts."""
    compose = (ROOT / "docker-compose.yml").read_text("utf-8")
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    folder = (provisioning / "dashboards" / "conclave.yml").read_text("utf-8")
    source = (provisioning / "datasources" / "prometheus.yml").read_text("utf-8")
    assert "path: /etc/grafana/dashboards" in folder
    assert "conclave.json:/etc/grafana/dashboards/conclave.json:ro" in compose
    assert "url: http://prometheus:9090" in source
    assert "\n  prometheus:\n" in compose
