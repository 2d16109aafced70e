"""The configuration of the embedded demo, as tables; the environment may change it."""

from __future__ import annotations

from decimal import Decimal

from app.data.embedded_demo import (
    DEMO_CLASSES,
    DEMO_FEATURE_NAMES,
    DEMO_LABEL,
    DEMO_ROW_COUNT,
    DEMO_SOURCE,
)


def tables() -> dict[str, object]:
    """Return the tables of the demo: everything but the ledger's address."""
    return {
        "release": {"name": "demo"},
        "data": {
            "source": DEMO_SOURCE,
            "rows": DEMO_ROW_COUNT,
            "label": DEMO_LABEL,
            "classes": list(DEMO_CLASSES),
            "features": [
                {"name": name, "kind": "numeric", "bounds": [0, 1]} for name in DEMO_FEATURE_NAMES
            ],
        },
        "hypotheses": {"class": "trees", "depth": 3, "bins": 8},
        "classifier": {"bins": 16},
        "privacy": {
            "epsilon": 1,
            "shares": {
                "relabel": Decimal("0.1"),
                "answers": Decimal("0.6"),
                "classifier": Decimal("0.3"),
            },
        },
        "answers": {
            "queries": 2000,
            "cutoff": 20,
            "ensemble": 800,
            "after": "classifier",
            "on_cutoff": "classifier",
        },
    }
