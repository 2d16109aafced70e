"""A stranger verifies an exported ledger with the program of the ledger's page."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders.ledger.releases import middle_of_life, publish, refreshed_epochs
from tests.builders.ledger.whole_lives import LIVES
from tests.docs.pages import ROOT, examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

PROGRAM = Path(__file__).with_name("verify_exported_ledger.py")
PROGRAM_LINES_MAX = 40


def verified(folder: Path, pages: list[list[dict[str, Any]]]) -> subprocess.CompletedProcess[str]:
    """Run the program on pages, as GET /ledger gives them, in a process without our code."""
    files = []
    for number, entries in enumerate(pages):
        files.append(folder / f"page-{number}.json")
        files[-1].write_text(json.dumps({"entries": entries, "head": {}}), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-I", str(PROGRAM), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def exported(tmp_path: Path) -> list[dict[str, Any]]:
    """Return every entry of a release that has published its classifier."""
    ledger = middle_of_life(tmp_path / "exported.db")
    publish(ledger)
    entries = ledger.public_entries(0, 1000)
    ledger.close()
    return entries


def test_the_page_has_the_program_as_it_is_tested() -> None:
    """The page and the tests hold the same text, short and without our imports."""
    text = PROGRAM.read_text(encoding="utf-8")
    assert examples(ROOT / "docs" / "ledger-format.md", "python") == [text]
    assert len(text.splitlines()) <= PROGRAM_LINES_MAX
    imported = {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported <= sys.stdlib_module_names


def test_a_sound_export_is_added_up(tmp_path: Path, exported: list[dict[str, Any]]) -> None:
    """A ledger in one page or in several verifies, with its head and its counters."""
    expected = f"11 entries, head {exported[-1]['hash']}, answered 9, unstable 2\n"
    for pages in ([exported], [exported[:4], exported[4:]]):
        done = verified(tmp_path, pages)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_an_export_with_refreshed_thresholds_is_added_up(tmp_path: Path) -> None:
    """Entries that bind a new threshold's noise are part of the chain like any other."""
    ledger = refreshed_epochs(tmp_path / "refreshed.db")
    entries = ledger.public_entries(0, 1000)
    ledger.close()
    assert [entry["kind"] for entry in entries].count("ThresholdRefreshed") == 2
    done = verified(tmp_path, [entries])
    expected = f"9 entries, head {entries[-1]['hash']}, answered 4, unstable 3\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


CHANGES: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "an entry is removed": lambda entries: entries.pop(4),
    "the first entry is removed": lambda entries: entries.pop(0),
    "an entry is duplicated": lambda entries: entries.insert(4, entries[4]),
    "two entries are swapped": lambda entries: entries.insert(4, entries.pop(5)),
    "a label is changed": lambda entries: entries[5]["body"].update(labels=[1, 0, 0]),
    "a digest is changed": lambda entries: entries[5]["body"]["digests"].reverse(),
    "a number is changed": lambda entries: entries[5].update(sequence=7),
    "a kind is changed": lambda entries: entries[5].update(kind="ReleaseOpened"),
    "a version is changed": lambda entries: entries[5].update(version=2),
    "a hash is changed": lambda entries: entries[5].update(hash="0" * 64),
    "a charge is changed": lambda entries: entries[1]["body"].update(epsilon="0"),
    "the cutoff is changed": lambda entries: entries[0]["body"].update(cutoff=99),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_export_is_refused(
    tmp_path: Path,
    exported: list[dict[str, Any]],
    change: Callable[[list[dict[str, Any]]], object],
) -> None:
    """Whatever is changed, the program says which entry and ends with 1."""
    changed = deepcopy(exported)
    change(changed)
    done = verified(tmp_path, [changed])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("entry ")


def program() -> ModuleType:
    """Return the program as a module, to be run many times."""
    spec = importlib.util.spec_from_file_location("exported", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("life", LIVES)
def test_every_kind_of_entry_is_checked(tmp_path: Path, life: str) -> None:
    """A whole life verifies by the program alone, and adds up to what the ledger says."""
    ledger = LIVES[life](tmp_path / "life.db")
    entries, state = ledger.public_entries(0, 1000), ledger.read_state()
    ledger.close()
    assert program().check(entries) == (
        f"{len(entries)} entries, head {state.head.hash}, "
        f"answered {state.answered}, unstable {state.unstable}\n"
    )


@pytest.mark.parametrize("life", LIVES)
def test_any_change_of_any_entry_is_refused(tmp_path: Path, life: str) -> None:
    """Any value of any entry that is another, and any entry gone, moved or doubled, is refused."""
    ledger = LIVES[life](tmp_path / "life.db")
    entries = ledger.public_entries(0, 1000)
    ledger.close()
    check = program().check
    count = 0
    for changed in changes(json.loads(json.dumps(entries))):
        with pytest.raises(SystemExit) as refused:
            check(changed)
        assert str(refused.value.code).startswith(("entry ", "the release exceeds"))
        count += 1
    assert count > 10 * len(entries)


def changes(entries: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the entries with one change each, of every entry and every value in it."""
    last = len(entries) - 1
    for index, entry in enumerate(entries):
        before, after = entries[:index], entries[index + 1 :]
        yield [*before, entry, entry, *after]
        if index < last:
            yield [*before, *after]
            yield [*before, after[0], entry, *after[1:]]
        for other in others(entry):
            if other.keys() == entry.keys():  # a member beside them is no part of an entry
                yield [*before, other, *after]


def others(value: Any) -> Iterator[Any]:
    """Yield a document with one of its values changed."""
    if isinstance(value, dict):
        for key in value:
            yield from (value | {key: other} for other in others(value[key]))
        yield value | {"more": 1}
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in others(item))
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    else:
        yield "0" if value is None else f"{value}0"
