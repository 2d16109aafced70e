"""Forests in a process whose address space is limited, by more and more; run by its test.

::

    python -m tests.builders.crash.near_the_limit
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.chunks import made_by_machine
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, fit_ensemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from tests.builders.learners.enumeration import unit_tests
from tests.builders.learners.plain_estimators import Plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.learning.hypothesis import FittedEnsemble

ROWS, CHUNKS = 6000, 4
FITTED_TREES: Final = 30
ASKED_TREES, QUERIES = 4, 150_000
MEGABYTE: Final = 1 << 20
ROOMS: Final = [MEGABYTE << step for step in range(10)]
"""Bytes that are left: less than a forest or its votes take, and at last more than all do."""

BLOCK_BYTES: Final = 16 * MEGABYTE
MACHINE: Final = "the machine failed"
FIT_ROOM = "HOARDER_FIT_ROOM"
COLUMNS: Final = (PublicColumn(bounds=(0.0, 1.0)),) * 3
SEARCHED: Final = hypothesis_class(
    ClassAsked(kind="trees", tests=unit_tests(1), depth=1, class_count=2)
)
FOREST: Final = "sklearn.ensemble.RandomForestClassifier"


def leave(room: int) -> None:
    """Let this process have so many bytes of address space more than it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    taken = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + room, resource.RLIM_INFINITY))


class Hoarder(Plain):
    """Keeps a block of memory for as long as it lives, and limits its process once told."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> Hoarder:
        """Limit, learn, and take a block."""
        room = os.environ.pop(FIT_ROOM, "")
        if room:
            leave(int(room))
        super().fit(rows, labels)
        self.block_ = np.empty(BLOCK_BYTES, dtype=np.uint8)
        return self

    def __getstate__(self) -> dict[str, object]:
        """Store nothing of the block."""
        return {name: value for name, value in vars(self).items() if name != "block_"}


def fitted(trees: int) -> FittedEnsemble:
    """Fit a forest a chunk on rows whose labels no forest explains with few leaves."""
    generator = np.random.default_rng(1)
    return fit_ensemble(
        Learner(
            hypothesis_class=SEARCHED,
            estimator=FOREST,
            params={"n_estimators": trees},
            columns=COLUMNS,
        ),
        generator.random((ROWS, len(COLUMNS))),
        generator.integers(0, 2, ROWS),
        permutation=np.arange(ROWS),
        offsets=np.arange(CHUNKS + 1) * (ROWS // CHUNKS),
        secret=b"forests",
    )


def outcome(work: Callable[[], bytes]) -> str:
    """Return what work came to, or that the machine failed, or the class of another error."""
    try:
        return hashlib.sha256(work()).hexdigest()
    except Exception as error:  # noqa: BLE001 -- what it is is the question
        return MACHINE if made_by_machine(error) else type(error).__name__


def in_a_child(work: Callable[[], bytes], room: int) -> str:
    """Return the outcome in a child of this process that has so much room."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        leave(room)
        os.write(writing, outcome(work).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


def main() -> None:
    """Print the outcomes of a fit and of votes for every room."""
    queries = np.random.default_rng(2).random((QUERIES, len(COLUMNS)))
    few, forests = queries[:1000], fitted(ASKED_TREES)

    def fit() -> bytes:
        return fitted(FITTED_TREES).vote_counts(few).tobytes()

    def vote() -> bytes:
        return forests.vote_counts(queries).tobytes()

    told = {  # children first: what this process has freed they could take again
        "fit": [in_a_child(fit, room) for room in ROOMS],
        "vote": [in_a_child(vote, room) for room in ROOMS[::3]],
        "without a limit": [outcome(fit), outcome(vote)],
    }
    print(json.dumps(told))  # noqa: T201 -- its test reads it


if __name__ == "__main__":
    main()
