"""Whatever adds a route or a command adds it to the surfaces that the canary tests search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.main import get_command

from app.cli import application
from app.http.dashboard.page import page_responses
from app.http.openapi.swagger_page import swagger_responses
from app.http.protocols.v2_grpc.calls import METHODS
from app.http.routes import ROUTES
from tests.canary.life import STAGES
from tests.canary.surfaces import SURFACES, WITHOUT_PRIVATE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATHS = ("/openapi.json", *page_responses(), *swagger_responses())
PAGES = {f"GET {path}" for path in PATHS}


def test_every_route_has_a_surface() -> None:
    """Every route, page and method, and the OpenAPI document, are driven by a surface; no other."""
    routes = {f"{entry.method} {entry.path}" for entry in ROUTES} | PAGES
    routes |= {f"gRPC {method}" for method in METHODS}
    covered = {each for surface in SURFACES for each in surface.covers}
    assert routes == {each for each in covered if not each.startswith("conclave ")}


def test_every_command_has_a_surface() -> None:
    """Every command is driven by a surface, or listed with the reason why it need not be."""
    covered = {each for surface in SURFACES for each in surface.covers}
    commands = {each for each in covered if each.startswith("conclave ")}
    assert commands | set(WITHOUT_PRIVATE_ROWS) == command_names()
    assert not commands & set(WITHOUT_PRIVATE_ROWS)


def test_every_surface_is_searched() -> None:
    """Every surface has a name of its own and is searched in one stage at least."""
    names = [surface.name for surface in SURFACES]
    assert len(set(names)) == len(names)
    assert {surface for _, surface in STAGES} == set(names)


@pytest.mark.parametrize("command", ["conclave serve", "conclave keys add"])
def test_every_command_is_seen(command: str) -> None:
    """The commands that are compared include those of a group."""
    assert command in command_names()


def command_names() -> set[str]:
    """Return every command, a group's by both of its names."""
    return set(_names("conclave", get_command(application())))


def _names(name: str, command: object) -> Iterator[str]:
    below: Mapping[str, object] = getattr(command, "commands", {})
    if not below:
        yield name
    for word, each in below.items():
        yield from _names(f"{name} {word}", each)
