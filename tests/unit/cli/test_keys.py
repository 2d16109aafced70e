"""``conclave keys``: keys are shown once and kept as hashes."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from app.api.key_ring import Role, read_key_ring
from app.cli import run

if TYPE_CHECKING:
    from pathlib import Path


def test_adds_keys_that_the_server_then_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed key opens what its role opens; the file holds its hash only."""
    path = tmp_path / "keys.toml"
    for name, role in (("web", "query"), ("ops", "admin")):
        arguments = ["--role", role, "--name", name, "--keys-file", str(path)]
        assert run(["keys", "add", *arguments]) == 0
        captured = capsys.readouterr()
        secret = captured.out.strip()
        assert f"added {name} ({role}) to {path}" in captured.err
        found = read_key_ring(path).find(secret)
        assert found is not None
        assert (found.name, found.role) == (name, Role(role))
        assert secret not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(["keys", "list", "--keys-file", str(path)]) == 0
    assert capsys.readouterr().out == "web\tquery\nops\tadmin\n"


def test_finds_the_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an option the variable decides, and without it the working directory."""
    monkeypatch.chdir(tmp_path)
    assert run(["keys", "add", "--role", "read", "--name", "here"]) == 0
    monkeypatch.setenv("CONCLAVE_SERVER__KEYS_FILE", str(tmp_path / "named.toml"))
    assert run(["keys", "add", "--role", "read", "--name", "named"]) == 0
    assert read_key_ring(tmp_path / "keys.toml").keys[0].name == "here"
    assert read_key_ring(tmp_path / "named.toml").keys[0].name == "named"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--role", "boss", "--name", "a"], "--role: 'boss' is none of query, read, admin"),
        (
            ["--role", "read", "--name", "a b"],
            "--name: 1 to 64 of the characters a-z A-Z 0-9 . _ -",
        ),
        (
            ["--role", "read", "--name", "web"],
            "--name: keys.toml has a key named web; choose another",
        ),
    ],
)
def test_refuses_what_the_server_would_refuse(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    """A bad role or name is one line, and the file stays as it was."""
    monkeypatch.chdir(tmp_path)
    run(["keys", "add", "--role", "query", "--name", "web"])
    before = (tmp_path / "keys.toml").read_bytes()
    capsys.readouterr()
    assert run(["keys", "add", *arguments]) == 2
    assert capsys.readouterr().err == f"conclave: {line}\n"
    assert (tmp_path / "keys.toml").read_bytes() == before


def test_does_not_append_to_what_is_no_file_of_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that the server would refuse is left alone."""
    path = tmp_path / "conclave.toml"
    path.write_text("[release]\n")
    assert run(["keys", "add", "--role", "read", "--name", "a", "--keys-file", str(path)]) == 2
    expected = f"conclave: server.keys_file: {path} may hold [[keys]] tables only\n"
    assert capsys.readouterr().err == expected
    assert path.read_text() == "[release]\n"


def test_finds_the_file_that_a_configuration_names(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--config`` means the file that the server of this configuration reads."""
    example = (repository / "examples/own-data.toml").read_text("utf-8")
    config = tmp_path / "conclave.toml"
    config.write_text(example)
    arguments = ["keys", "add", "--role", "read", "--name", "page", "--config", str(config)]
    assert run(arguments) == 2
    expected = f"server.keys_file: {config} does not set it; set it, or give --keys-file"
    assert capsys.readouterr().err == f"conclave: {expected}\n"
    config.write_text(example.replace("# keys_file", "keys_file"))
    assert run(arguments) == 0
    assert read_key_ring(tmp_path / "keys.toml").keys[0].name == "page"
