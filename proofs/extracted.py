"""The checkers as a program: extracted from Coq, compiled by OCaml with Zarith."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCES: Final = Path(__file__).parent
PROGRAM: Final = "verdicts.ml"
COMPILER: Final = ("ocamlfind", "ocamlopt", "-package", "zarith", "-linkpkg")
SECONDS_MAX: Final = 600
VERDICTS: Final = {"accepted": True, "refused": False}


class ExtractionError(Exception):
    """The program could not be made, or said something else than verdicts."""


def compile_program(folder: Path) -> Path:
    """Return the program, made of ``checkers.ml``, which ``extraction.v`` wrote to a folder.

    Raises:
        ExtractionError: with what the compiler says.

    """
    shutil.copy(SOURCES / PROGRAM, folder)
    command = (*COMPILER, "checkers.mli", "checkers.ml", PROGRAM, "-o", "verdicts")
    _run(command, folder=folder, text="")
    return folder.resolve() / "verdicts"


def verdicts(program: Path, lines: Iterable[str]) -> list[bool]:
    """Return for each line of :mod:`proofs.terms` whether the program accepts it.

    Raises:
        ExtractionError: where a line is not one, or a verdict is missing.

    """
    given = list(lines)
    said = _run((str(program),), folder=program.parent, text="".join(f"{one}\n" for one in given))
    words = said.split()
    if len(words) != len(given) or not set(words) <= set(VERDICTS):
        message = "the extracted program did not give a verdict for each line"
        raise ExtractionError(message)
    return [VERDICTS[word] for word in words]


def _run(command: tuple[str, ...], *, folder: Path, text: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    if done.returncode:
        message = f"{command[0]} fails:\n{done.stderr}"
        raise ExtractionError(message)
    return done.stdout
