"""The queries of the shipped dashboard."""

from __future__ import annotations

import json
from typing import Final

from tests.deploy.promtool import ROOT

DASHBOARD: Final = ROOT / "deploy" / "grafana" / "conclave.json"


def queries() -> list[str]:
    """Return every query of a panel or a variable, as written."""
    document = json.loads(DASHBOARD.read_text("utf-8"))
    of_panels = [
        target["expr"] for panel in document["panels"] for target in panel.get("targets", ())
    ]
    variables = document["templating"]["list"]
    return of_panels + [each["query"]["query"] for each in variables if each["type"] == "query"]


def filled_in() -> list[str]:
    """Return the panels' queries as Grafana sends them, with everything selected."""
    values = {"$job": ".*", "$instance": ".*", "$__rate_interval": "5s"}
    asked = [query for query in queries() if not query.startswith("label_values(")]
    for name, value in values.items():
        asked = [query.replace(name, value) for query in asked]
    return asked
