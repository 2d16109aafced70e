"""``conclave statistics`` in a process of its own, and what is asked of a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.builders.server.http_learning import learn
from tests.builders.server.http_release import ROW_COUNT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.server.http_release import SmallRelease

SHARES = {"relabel": "0.3", "answers": "0.1", "classifier": "0.3", "statistics": "0.3"}
ALONE = {"relabel": "0", "answers": "0", "classifier": "0", "statistics": "1"}


def stump(cut: float, first: str = "no", second: str = "yes") -> dict[str, Any]:
    """Return a tree that says yes, or another second outcome, from an age on."""
    branches = {"true": {"label": second}, "false": {"label": first}}
    return {"tree": {"feature": 0, "at_least": cut, **branches}}


QUESTION = {"hypotheses": [stump(50), {"tree": {"label": "yes"}}]}
COMMAND = ("-m", "app", "statistics")


def question(release: SmallRelease, document: object = QUESTION) -> Path:
    """Write what is asked beside the release, and return its file."""
    path = release.folder / "hypotheses.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def asked(release: SmallRelease, *options: str | Path) -> dict[str, Any]:
    """Ask by the command line, which must succeed, and return what it prints."""
    ended = learn(release, *options, question(release), script=COMMAND)
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def exact(release: SmallRelease) -> list[float]:
    """Return the exact means of what is asked."""
    lines = release.source.read_text(encoding="utf-8").splitlines()[1:]
    older = sum(float(line.split(",")[0]) >= 50 for line in lines)
    assert len(lines) == ROW_COUNT
    return [2 * older / len(lines) - 1, 1.0]
