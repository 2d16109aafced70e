"""Small releases: opened once a session for each configuration, copied for each test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.builders.server.http_release import SmallRelease
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.server.chances import Asked

OpenedRelease: TypeAlias = Callable[..., SmallRelease]


@pytest.fixture(scope="session")
def opened_releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SmallRelease]:
    """Return what opens a release by its changes, as JSON, the first time it is wanted."""
    opened: dict[str, SmallRelease] = {}

    def open_once(changes: str, asked: Asked | None = None) -> SmallRelease:
        if changes not in opened:
            folder = tmp_path_factory.mktemp("release")
            release = SmallRelease(folder, json.loads(changes)).write(asked=asked)
            # What it logs is of no test: which one opens it first depends on their order.
            with redirect_stdout(StringIO()), Served(release.settings()):
                opened[changes] = release
        return opened[changes]

    return open_once


@pytest.fixture
def opened(opened_releases: Callable[..., SmallRelease], tmp_path: Path) -> OpenedRelease:
    """Return what gives a test its own copy of a release that is open and unasked."""

    def copy(asked: Asked | None = None, **changes: Mapping[str, str]) -> SmallRelease:
        release = opened_releases(json.dumps(changes, sort_keys=True), asked)
        return release.copy_to(tmp_path / "release")

    return copy
