"""Where an installation cannot go on, one line says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.tidy.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# Python as Debian ships it: there, but without the package that venv needs.
WITHOUT_VENV = """#!/bin/sh
case "$2" in
    *ensurepip*) echo "No module named 'ensurepip'" >&2; exit 1 ;;
    *) exec {python} "$@" ;;
esac
"""
OUTDATED = """#!/bin/sh
case "$2" in
    *print*) echo 3.9 ;;
    *) exit 1 ;;
esac
"""


def _make_venv(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run what ``make install`` runs first, with another interpreter."""
    return subprocess.run(
        ["/bin/sh", str(ROOT / ".ci" / "make-venv"), str(folder / "venv")],
        env={**os.environ, "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (WITHOUT_VENV, f"install the package python3.{sys.version_info.minor}-venv"),
        (OUTDATED, "is Python 3.9, and 3.11 or newer is needed"),
    ],
)
def test_an_interpreter_that_will_not_do_is_one_line(
    script: str, said: str, tmp_path: Path
) -> None:
    """An interpreter without venv, or too old, ends in one line that names what to install."""
    python = tmp_path / "python3"
    python.write_text(script.replace("{python}", sys.executable), encoding="utf-8")
    python.chmod(0o755)
    made = _make_venv(tmp_path, str(python))
    assert made.returncode == 1
    assert made.stderr.count("\n") == 1
    assert said in made.stderr
    assert not (tmp_path / "venv").exists()


def test_no_interpreter_is_one_line(tmp_path: Path) -> None:
    """Without any Python one line names the package to install."""
    made = _make_venv(tmp_path, str(tmp_path / "python3"))
    assert made.returncode == 1
    assert made.stderr.count("\n") == 1
    assert "install the package python3" in made.stderr
