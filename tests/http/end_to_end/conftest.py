"""Small releases: opened once a session for each configuration, copied for each test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.http.end_to_end.serving import Served
from tests.http.end_to_end.small_release import SmallRelease

if TYPE_CHECKING:
    from pathlib import Path

OpenedRelease: TypeAlias = Callable[..., SmallRelease]


@pytest.fixture(scope="session")
def opened_releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], SmallRelease]:
    """Return what opens a release by its changes, as JSON, the first time it is wanted."""
    opened: dict[str, SmallRelease] = {}

    def open_once(changes: str) -> SmallRelease:
        if changes not in opened:
            folder = tmp_path_factory.mktemp("release")
            release = SmallRelease(folder, json.loads(changes)).write()
            with Served(release.settings()):
                opened[changes] = release
        return opened[changes]

    return open_once


@pytest.fixture
def opened(opened_releases: Callable[[str], SmallRelease], tmp_path: Path) -> OpenedRelease:
    """Return what gives a test its own copy of a release that is open and unasked."""

    def copy(**changes: Mapping[str, str]) -> SmallRelease:
        return opened_releases(json.dumps(changes, sort_keys=True)).copy_to(tmp_path / "release")

    return copy
