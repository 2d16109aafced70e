"""Both wheels, built without a network: the client's stands alone, the server's brings it along."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest

from app.cli.background_server import BackgroundServer
from app.release.progress import no_progress
from app.settings.settings import load_settings
from tests.docs.pages import ROOT
from tests.docs.readers_release import write_release

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = ROOT / "clients" / "python"
COPIED = re.compile(r"^COPY (?!--from)(.+) (\S+)$", re.MULTILINE)
BUILD = "import setuptools.build_meta, sys; setuptools.build_meta.build_wheel(sys.argv[1])"
# What a user's own program may look like: folders of its own by the names of the server's.
PROGRAM = """\
import json
import sys

import app
import migrations
from conclave_client import Answer, Client, InvalidRequestError

assert (app.OWNER, migrations.OWNER) == ("a user", "a user")
assert "numpy" not in sys.modules
rows = [[20 + number, "Private"] for number in range(5)]
with Client(sys.argv[1]) as client:
    first = client.query({"age": 20, "workclass": "Private"}, key="first")
    answers = list(client.stream(iter(rows), rows_a_request=2))
    assert all(isinstance(each, Answer) for each in answers)
    try:
        client.query([1])
    except InvalidRequestError as error:
        refused = error.slug
    budget, schema = client.budget(), client.schema()

from conclave_client import Classifier

labels = Classifier(json.loads(sys.argv[2])).predict({"age": [1, 99, None]}).tolist()
print(json.dumps({
    "numbers": [first.query_id, *(each.query_id for each in answers)],
    "refused": refused,
    "answered": budget["queries"]["answered"],
    "features": [feature["name"] for feature in schema["features"]],
    "labels": labels,
    "modules": sorted(path for each in sys.modules.values()
                      if (path := getattr(each, "__file__", None))),
}))
"""
DOCUMENT = {
    "format": "conclave-classifier",
    "version": 1,
    "release": "r",
    "label": "y",
    "classes": ["no", "yes"],
    "missing": [],
    "features": [{"name": "age", "kind": "numeric", "bounds": [0, 100]}],
    "tree": {"feature": 0, "at_least": 50, "true": {"label": "yes"}, "false": {"label": "no"}},
}


def built(sources: Path, folder: Path) -> Path:
    """Build the wheel of a copy of its sources, which building writes into."""
    subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=sources, check=True, capture_output=True
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def copied(source: Path, to: Path) -> Path:
    """Copy sources without what Python and earlier builds left among them."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copy(source, to)
    else:
        left = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
        shutil.copytree(source, to, ignore=left)
    return to


@pytest.fixture(name="client_wheel", scope="module")
def wheel_of_the_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the client's wheel."""
    folder = tmp_path_factory.mktemp("client")
    return built(copied(CLIENT, folder / "sources"), folder)


def test_the_client_runs_where_there_is_no_server(client_wheel: Path, tmp_path: Path) -> None:
    """The installed wheel asks and predicts beside an ``app`` and ``migrations`` of a user's."""
    installed, folder = tmp_path / "installed", tmp_path / "program"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-deps", "--no-index", "--target", str(installed), str(client_wheel)], check=True
    )
    for name in ("app", "migrations"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text('OWNER = "a user"\n', encoding="utf-8")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    write_release(tmp_path)
    settings = load_settings(tmp_path / "conclave.toml", {"CONCLAVE_SERVER__PORT": "0"})
    server = BackgroundServer(settings)
    server.start(no_progress)
    try:
        # Without `site` no path entry of this environment leads to the repository.
        libraries = [str(installed), sysconfig.get_paths()["purelib"]]
        done = subprocess.run(
            [sys.executable, "-S", "program.py", server.address, json.dumps(DOCUMENT)],
            cwd=folder,
            env={"PYTHONPATH": ":".join(libraries)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    modules = told.pop("modules")
    assert told == {
        "numbers": [1, 1, 2, 3, 4, 5],
        "refused": "invalid-features",
        "answered": 5,
        "features": ["age", "workclass"],
        "labels": ["no", "yes", "no"],
    }
    assert str(installed / "conclave_client" / "client.py") in modules
    assert not [path for path in modules if path.startswith((f"{ROOT}/app", f"{ROOT}/clients"))]


def test_the_clients_wheel_holds_the_client_alone(client_wheel: Path) -> None:
    """Its modules and the mark of its types are in it, and nothing else."""
    modules = {str(path.relative_to(CLIENT)) for path in (CLIENT / "conclave_client").glob("*.py")}
    with zipfile.ZipFile(client_wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == modules | {"conclave_client/py.typed"}


def test_the_servers_wheel_holds_the_client_too(tmp_path: Path) -> None:
    """What the image copies suffices to build it, and it has every package that it imports."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    for sources, target in COPIED.findall(dockerfile):
        for source in sources.split():
            assert f"\n!{source}" in ignored
            if target.startswith("/"):  # beside what is built
                continue
            inner = target.removeprefix("./") if target != "./" else source
            copied(ROOT / source, tmp_path / "sources" / inner)
    with zipfile.ZipFile(built(tmp_path / "sources", tmp_path)) as wheel:
        held = set(wheel.namelist())
    for folder, name in (("app", "app"), ("migrations", "migrations"), (".", "conclave_client")):
        below = CLIENT if folder == "." else ROOT
        paths = (below / name).rglob("*.py")
        assert {str(path.relative_to(below)) for path in paths} <= held
    assert "conclave_client/py.typed" in held
