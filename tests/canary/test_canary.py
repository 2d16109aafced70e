"""Private values are searched for in everything that every surface emits, at every stage.

The surfaces are ``tests.canary.surfaces.SURFACES``.  They are driven in use, after a crash,
after a failure that quotes votes or rows, and by commands; logs are at debug level.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.builders.server.http_release import SmallRelease, private_rows
from tests.builders.server.nursery import started
from tests.canary.life import (
    CONTAINED,
    CRASHED,
    ENDED,
    FAILED,
    FRESH,
    HALTED,
    LEAKY,
    LOG,
    PUBLISHED,
    REFUSED,
    RUN,
    STAGES,
    Life,
    live,
)
from tests.canary.marked_release import (
    MARKED_AGE,
    MARKED_GROUP,
    MARKED_REQUEST,
    MARKED_ROWS,
    secret_marks,
)
from tests.canary.marks import Mark, encodings, found, text_mark

if TYPE_CHECKING:
    from pathlib import Path

# What shows that a surface was driven as far as its stage goes.
EXPECTED = {
    (FRESH, "/query"): b'"phase":"ensemble"',
    (FRESH, "gRPC"): b"query_id",
    (FRESH, LOG): b'"event": "answers_committed"',
    (FRESH, "traces"): b"POST /query",
    (FRESH, "/statistics"): b"statistics-not-open",
    (FRESH, "problems"): b"idempotency",
    (FRESH, "conclave query"): b"age,group,query_id",
    (CRASHED, LOG): b"Fatal Python error: Aborted",
    (ENDED, LOG): b"conclave: serving",
    (PUBLISHED, "/classifier"): b"conclave-classifier",
    (PUBLISHED, "the model"): b"application/onnx",
    (PUBLISHED, "/statistics/table"): b"200",
    (PUBLISHED, "/query"): b'"replayed":true',
    (CONTAINED, "/query"): b"release-stopped",
    (CONTAINED, "gRPC"): b"release-stopped",
    (HALTED, "/budget"): b'"phase":"halted"',
    (HALTED, "/query"): b"410",
    (HALTED, "/docs"): b"as installed",
    (REFUSED, LOG): b"internal failure",
    (RUN, "conclave learn"): b"conclave-classifier",
    (RUN, "conclave statistics"): b'"values"',
    (RUN, "conclave append"): b"generation 2 is appended",
    (RUN, "conclave export"): b"GatherElements",
    (RUN, "conclave verify"): b"verified: sequence",
    (RUN, "conclave audit"): b'"holds":true',
    (RUN, "conclave plan"): b'"feasible"',
    (RUN, "conclave statement"): b'"privacy_unit"',
    (RUN, "conclave check"): b'"fits":true',
    (RUN, "conclave simulate"): b"outcome",
    (RUN, "conclave ledger"): b"retired: sequence",
    (RUN, "conclave keys"): b"one\tquery\t7",
    (FAILED, "conclave learn"): b"internal failure",
    (FAILED, "conclave statistics"): b"internal failure",
}
# Each place that a test double leaks at: what leaks there, and the surface that shows it.
LEAKS = {
    "log": ("votes of query", LOG),
    "reply": ("h-hat", "/budget"),
    "header": ("d of query", "/schema"),
    "problem": ("a private category", "problems"),
    "page": ("gap of query", "/"),
    "openapi": ("a number", "/openapi.json"),
    "onnx": ("private accuracy", "conclave export"),
    "stderr": ("rows labelled rightly", "conclave export"),
    "trace": ("votes of query", "traces"),
}


@pytest.fixture(scope="session")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Live through every stage once."""
    return live(tmp_path_factory.mktemp("canary"))


@pytest.fixture(scope="session")
def secrets(life: Life) -> tuple[Mark, ...]:
    """Return the marks of what the served release knows of its rows."""
    return secret_marks(SmallRelease(life.folder / PUBLISHED))


@pytest.fixture(scope="session")
def leaky(life: Life, secrets: tuple[Mark, ...]) -> Life:
    """Live through a stage where every place leaks."""
    marks = (*MARKED_ROWS, *secrets)
    leaks = {place: _text(_named(marks, kind)) for place, (kind, _) in LEAKS.items()}
    learnt = SmallRelease(life.folder / RUN)
    life.leak(SmallRelease(life.folder / LEAKY), learnt, leaks)
    return life


@pytest.mark.parametrize(("stage", "surface"), STAGES)
def test_no_private_value_is_emitted(
    life: Life, secrets: tuple[Mark, ...], stage: str, surface: str
) -> None:
    """Neither a value of a row, a vote, gap, distance, h-hat nor private accuracy leaves."""
    emitted = life.emitted[stage, surface]
    assert not found((*MARKED_ROWS, *secrets), emitted)
    if surface not in {"/query", "/query/stream"}:
        assert not found(MARKED_REQUEST, emitted)


@pytest.mark.parametrize(("stage", "surface"), EXPECTED)
def test_every_surface_was_driven(life: Life, stage: str, surface: str) -> None:
    """A search means something: the surface said what it says at that stage."""
    assert EXPECTED[stage, surface] in life.emitted[stage, surface]


def test_every_kind_of_secret_is_marked(secrets: tuple[Mark, ...]) -> None:
    """Votes, gaps and distances of every query are searched for, and h-hat, and accuracy."""
    kinds = {mark.name.split(" of query")[0] for mark in secrets if mark.pieces or mark.numbers}
    assert kinds == {"votes", "gap", "d", "h-hat", "private accuracy", "rows labelled rightly"}


@pytest.mark.parametrize("place", LEAKS)
def test_a_planted_leak_is_found(leaky: Life, secrets: tuple[Mark, ...], place: str) -> None:
    """A test double that lets a private value out at one place is caught by its surface."""
    kind, surface = LEAKS[place]
    leaked = _named((*MARKED_ROWS, *secrets), kind)
    assert leaked.name in found((leaked,), leaky.emitted[LEAKY, surface])
    assert not any(
        leaked.is_in(emitted) for (stage, _), emitted in leaky.emitted.items() if stage != LEAKY
    )


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("mark", [*MARKED_ROWS, *MARKED_REQUEST], ids=lambda mark: mark.name)
def test_every_encoding_is_found(mark: Mark, shift: int) -> None:
    """A value is found in any text around it, as digits, bits, hexadecimal digits or base64."""
    for piece in mark.pieces:
        raw = b"x" * shift + piece + b"yz"
        assert mark.is_in(b'{"a": "' + raw + b'"}')
        if re.fullmatch(rb"[0-9a-f]{16,}", piece):
            assert mark.is_in(raw.upper())
    for form in encodings(b"z" * shift + mark.pieces[0] + b"z"):
        assert mark.is_in(form)


def test_a_number_is_found_whole() -> None:
    """A count is found beside punctuation, and not within a hash, a UUID or another number."""
    mark = Mark("votes", numbers=(3786,))
    for text in (b'{"votes":[1217,3786]}', b"votes 3786.", b"(3786, 1217)", b"-3786", b"=3786\n"):
        assert mark.is_in(text)
    for text in (b"37861", b"a3786", b"1.3786", b"3786.5", b"4f3a-3786-11ee"):
        assert not mark.is_in(text)


def test_a_bad_private_cell_is_named_without_its_value(tmp_path: Path) -> None:
    """A cell that does not fit ends the start with its column and row, and no value."""
    release = SmallRelease(tmp_path)
    rows = private_rows()
    release.write([*rows[:2], (str(MARKED_AGE), MARKED_GROUP, "canary-label"), *rows[3:]])
    process = started(release.config)
    assert process.wait() == 2
    said = process.errors()
    assert said.splitlines()[-1].startswith('conclave: data.source: column "approved", row 3: ')
    assert not found((*MARKED_ROWS, text_mark("a label", "canary-label")), said.encode())


def _named(marks: tuple[Mark, ...], kind: str) -> Mark:
    """Return the first mark of a kind that has a form to be searched for."""
    return next(
        mark for mark in marks if mark.name.startswith(kind) and (mark.pieces or mark.numbers)
    )


def _text(mark: Mark) -> str:
    """Return one form of a value as a text."""
    return mark.pieces[0].decode() if mark.pieces else f"[{mark.numbers[0]}]"
