"""The guard around a move: record what comes out of whole lives, and compare it later.

::

    python -m tests.lives record -o FILE [--jobs 2] [--only TEXT]
    python -m tests.lives compare FILE [--jobs 2] [--only TEXT]
    python -m tests.lives claims [--against FILE]
    python -m tests.lives list

``compare`` ends with 1 where a byte differs, and shows the first that does.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

# As the command line sets it before numpy loads, and in every process that lives run in.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.builders.ledger.postgresql_server import ENVIRONMENT, postgresql_server
from tests.lives import claims, records
from tests.lives.catalogue import POSTGRESQL, lives

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DONE, DIFFERENT = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked and return the exit code."""
    given = _parser().parse_args(arguments)
    doing: Callable[[argparse.Namespace], int] = given.do
    return doing(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lives", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True)
    record = commands.add_parser("record", help="live every life, and keep what came out")
    record.add_argument("-o", "--output", type=Path, required=True)
    record.set_defaults(do=_record)
    compare = commands.add_parser("compare", help="live them again, and compare every byte")
    compare.add_argument("file", type=Path)
    compare.set_defaults(do=_compare)
    for each in (record, compare):
        each.add_argument("--jobs", type=int, default=2, help="processes")
        each.add_argument("--only", default="", help="lives whose names hold this text")
    listing = commands.add_parser("list", help="print the names of the lives")
    listing.set_defaults(do=_list)
    listed = commands.add_parser("claims", help="list tests, planted faults and guarded lines")
    listed.add_argument("--against", type=Path, help="an earlier list, of which nothing may lack")
    listed.set_defaults(do=_claims)
    return parser


def _names(only: str) -> list[str]:
    return [name for name in lives() if only in name]


def _record(given: argparse.Namespace) -> int:
    """Record, and say how much came out of each life."""
    started, count = time.monotonic(), 0
    names = _names(given.only)
    with _database(names), records.writing(given.output) as writer:
        for each in records.lived(names, jobs=given.jobs):
            writer.add(each)
            count += len(each.items)
            _tell(f"{each.seconds:6.1f} s {len(each.items):5} items  {each.name}")
    size = given.output.stat().st_size
    spent = time.monotonic() - started
    _say(f"{len(names)} lives, {count} items, {size} bytes, {spent:.0f} s")
    return DONE


def _compare(given: argparse.Namespace) -> int:
    """Compare life by life, show the first difference of each, and count them."""
    recording, different = records.read(given.file), 0
    for name, value in records.about_here().items():
        if name != "commit" and recording.about.get(name) != value:
            _tell(f"recorded with {name} {recording.about.get(name)}, now {value}")
    names = [name for name in recording.lives if given.only in name]
    gone = [name for name in names if name not in lives()]
    for name in gone:
        _say(f"{name}: this life is gone")
    with _database(names):
        for each in records.lived([name for name in names if name in lives()], jobs=given.jobs):
            said = records.first_difference(recording.lives[each.name], each.items)
            different += said is not None
            if said is not None:
                _say(f"{each.name}: {said}")
    count = sum(len(recording.lives[name]) for name in names)
    _say(f"{len(names)} lives, {count} items: {different + len(gone)} lives differ")
    return DIFFERENT if different or gone or not names else DONE


def _list(given: argparse.Namespace) -> int:
    del given
    _say("\n".join(lives()))
    return DONE


def _claims(given: argparse.Namespace) -> int:
    """Print the list, or what it lacks of an earlier one."""
    found = claims.listed()
    if given.against is None:
        _say("\n".join(found))
        return DONE
    lacking = claims.lacking(given.against.read_text(encoding="utf-8").splitlines(), found)
    _say("\n".join([*lacking, f"{len(lacking)} lines lack or shrank"]))
    return DIFFERENT if lacking else DONE


def _database(names: Sequence[str]) -> ExitStack:
    """Start a server of PostgreSQL where a life needs one and the environment names none."""
    stack, known = ExitStack(), lives()
    if not any(known[name].database == POSTGRESQL for name in names if name in known):
        return stack
    server = stack.enter_context(postgresql_server())
    named = os.environ.get(ENVIRONMENT)
    address = server.url.render_as_string(hide_password=False)
    os.environ[ENVIRONMENT] = named or address
    if named is None:
        stack.callback(os.environ.pop, ENVIRONMENT)
    return stack


def _tell(line: str) -> None:
    _say(line, sys.stderr)


def _say(line: str, file: TextIO | None = None) -> None:
    print(line, file=file, flush=True)


if __name__ == "__main__":
    sys.exit(main())
