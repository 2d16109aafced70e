"""What tests call in the processes of learners, by import path."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.learning.estimators.learner_processes import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
_opened: list[str] = []
_watches: list[bool] = []


def process_and_part(number: int) -> tuple[int, int, object]:
    """Return the number that was sent, the process, and what it keeps."""
    return number, os.getpid(), kept()


def end_unless_marked(mark: str) -> int:
    """End this process, the first time; return it the second."""
    path = Path(mark)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    return os.getpid()


def speak() -> None:
    """Say something private by every way there is."""
    print("private")  # noqa: T201 -- what it is for
    print("private", file=sys.stderr)  # noqa: T201 -- as above
    warnings.warn("private", stacklevel=1)
    for descriptor in (1, 2):
        os.write(descriptor, b"private\n")


def fail_aloud() -> None:
    """Raise what quotes private values."""
    message = "private"
    raise ValueError(message)


def count_processors() -> tuple[str, str]:
    """Return how many threads this process's libraries may take."""
    return os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]


def watch_files() -> None:
    """Note from now on every path that this process opens to write to."""
    if not _watches:
        sys.addaudithook(_note)
    _watches[:] = [True]
    _opened.clear()


def files_written() -> Sequence[str]:
    """Return the paths noted, and note no more."""
    _watches[:] = [False]
    return list(_opened)


def write_a_file(path: str) -> None:
    """Write rows to disk, as a worker of joblib may that is handed large ones."""
    np.memmap(path, dtype=np.float64, mode="w+", shape=(2,)).flush()


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if not (event == "open" and _watches[0]):
        return
    path, _, flags = arguments
    is_file = isinstance(path, str) and not path.startswith("/dev/null")
    if is_file and isinstance(flags, int) and flags & _WRITING:
        _opened.append(str(path))
