"""The project file, the locks and the code agree."""

from __future__ import annotations

import re
import sys
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from setuptools import find_namespace_packages

import conclave_client
from tests.tidy.sources import ROOT, imported_modules, python_files, repository_files

CLIENT = ROOT / "clients" / "python"
# Packages of the repository that an installation of the server has.
OWN = {"app", "conclave_client", "migrations"}
LOCKS = ("requirements.lock", "requirements-image.lock", "requirements-test.lock")
# Libraries that a command imports when it runs, by the extra that installs them.
IMPORTED_OF_EXTRAS = {
    "distributed": "dask",
    "google": "grpc",
    "grpc": "grpc",
    "joserfc": "oidc",
    "matplotlib": "plot",
    "opentelemetry": "telemetry",
}
# Pinned and brought along by a library that is declared.
BROUGHT_ALONG = {"pydantic_core"}
# Imported by another name than that of their distribution.
IMPORTED_AS = {"scikit-learn": "sklearn"}
# Chosen by name: by the build, and by `ledger.url`; of one only files are served.
USED_WITHOUT_IMPORT = {"fastapi-offline", "psycopg", "setuptools"}
IGNORES = re.compile(r"^(ignore = \[|\"[^\"]+\" = \[)\n(.*?)^\]", re.MULTILINE | re.DOTALL)


def _project() -> dict[str, Any]:
    """Return ``pyproject.toml`` as read."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _locked(lock: str) -> dict[str, set[str]]:
    """Return the versions that a lock pins, by distribution."""
    pinned: dict[str, set[str]] = {}
    for line in (ROOT / lock).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            name, version = re.split(r"==|[ ;\\]", line)[:2]
            pinned.setdefault(name, set()).add(version)
    return pinned


def _extra(name: str) -> list[Requirement]:
    """Return what an extra asks for, and the extras of ours that it names."""
    project = _project()["project"]
    wanted = [Requirement(text) for text in project["optional-dependencies"][name]]
    others = [each for each in wanted if each.name == project["name"]]
    named = [item for own in others for extra in own.extras for item in _extra(extra)]
    return [each for each in wanted if each not in others] + named


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_pins_and_hashes_only(lock: str) -> None:
    """Every line of a lock is a pin, a hash or a comment; options and addresses are none."""
    shape = re.compile(
        r"[a-z0-9.-]+==\S+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|    #.*|"
    )
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not shape.fullmatch(line)]
    assert not odd, "\n".join(odd)


def test_the_locks_agree() -> None:
    """Each lock pins what the one before it does, to the same versions."""
    runtime, image, everything = (_locked(lock) for lock in LOCKS)
    assert runtime.items() <= image.items() <= everything.items()


def test_the_locks_cover_the_project() -> None:
    """Every requirement of the project is pinned to a version that it accepts."""
    project = _project()["project"]
    wanted = [Requirement(text) for text in project["dependencies"]]
    image = [
        requirement
        for name in ("dask", "grpc", "oidc", "telemetry")
        for requirement in _extra(name)
    ]
    lists = (wanted, wanted + image, wanted + _extra("test"))
    for lock, requirements in zip(LOCKS, lists, strict=True):
        pinned = _locked(lock)
        for requirement in requirements:
            versions = pinned[requirement.name]
            assert all(requirement.specifier.contains(version) for version in versions)


def test_what_is_imported_is_declared() -> None:
    """Every library that the application imports is a dependency, and the reverse."""
    declared = {Requirement(text).name for text in _project()["project"]["dependencies"]}
    imported = {
        module.split(".")[0]
        for folder in ("app", "clients/python", "migrations")
        for path in python_files(folder)
        for module in imported_modules(path)
    }
    foreign = imported - sys.stdlib_module_names - OWN - BROUGHT_ALONG
    for module, extra in IMPORTED_OF_EXTRAS.items():
        assert module not in foreign or _extra(extra)
    foreign -= IMPORTED_OF_EXTRAS.keys()
    used = {
        IMPORTED_AS.get(name, name.replace("-", "_")) for name in declared - USED_WITHOUT_IMPORT
    }
    assert foreign == used


def test_the_client_asks_for_no_more_than_the_server_has() -> None:
    """Every library that the client declares is one of the server's, which brings it along."""
    client = tomllib.loads((CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {Requirement(text).name for text in client["dependencies"]}
    assert names <= {Requirement(text).name for text in _project()["project"]["dependencies"]}
    imported = {
        module.split(".")[0]
        for path in python_files("clients/python")
        for module in imported_modules(path)
    }
    assert imported - sys.stdlib_module_names - {"conclave_client"} == names
    assert conclave_client.__version__ == _project()["project"]["version"]


def test_what_browsers_get_is_installed() -> None:
    """Every page, style and script of the application is in the packages of an installation."""
    found = _project()["tool"]["setuptools"]
    packages = find_namespace_packages(str(ROOT), include=found["packages"]["find"]["include"])
    installed = {
        path
        for package in packages
        for pattern in found["package-data"]["*"]
        for path in ROOT.joinpath(*package.split(".")).glob(pattern)
    }
    kinds = {".css", ".html", ".js", ".svg"}
    served = {path for path in repository_files() if path.suffix in kinds}
    served = {path for path in served if path.is_relative_to(ROOT / "app")}
    assert served
    assert served <= installed


def test_every_ignored_rule_has_its_reason() -> None:
    """Each rule that ruff is told to ignore has a comment beside it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text[text.index("[tool.ruff.lint]") : text.index("[tool.ruff.lint.pydocstyle]")]
    rules = [line for found in IGNORES.finditer(section) for line in found[2].splitlines()]
    assert rules
    bare = [line for line in rules if not re.fullmatch(r'\s+"[A-Z0-9]+",\s*# \S.*', line)]
    assert not bare, "\n".join(bare)
