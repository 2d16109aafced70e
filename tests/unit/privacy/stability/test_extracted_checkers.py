"""The checkers extracted from Coq decide as the server's own do, on tables of every kind."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError
from app.privacy.budget.account import Draw, log_moment
from app.privacy.stability import hit_table
from app.privacy.stability.certified import certified_table
from app.privacy.stability.certified.certified_table import CertifiedTable
from app.privacy.stability.hit_table import (
    ENTRY_COUNT_MAX,
    ProfileTable,
    calibrate,
    find_thresholds,
)
from app.privacy.stability.profile_parameters import (
    LN_RATIO_GRID,
    RELEASE_DELTA_PER_HIT_MIN,
    choose_ln_ratio,
)
from app.privacy.stability.table_inequality import ALPHA_MAX, WORD_RANGE
from proofs.build import SOURCES, check_file
from proofs.certificate import (
    TableNumbers,
    account_numbers,
    read_table,
    table_line,
    table_numbers,
)
from proofs.certified import certificate_numbers
from proofs.extracted import compile_program, verdicts
from proofs.terms import line, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLE_COUNT = 2_500
TABLE_COUNT_OF_LONG = 10_000
CERTIFICATE_COUNT = 30
KERNEL_COUNT = 20
SHARED_COUNT = 1_000
MOMENT_MARGIN = Fraction(1, 1 << 100)
EXTRACTED = ("checker.v", "certified.v", "sweep.v", "extraction.v")
LEAST_RUN = Fraction(1, 10**3)

KERNEL_FILE = """\
From Coq Require Import NArith List.
From Conclave Require Import checker.
Import ListNotations.
Delimit Scope N_scope with num.
{definitions}
Fact verdicts : map check_table [{names}] = [{verdicts}].
Proof. vm_compute. reflexivity. Qed.
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extracted program, made from the sources."""
    if shutil.which("coqc") is None or shutil.which("ocamlfind") is None:
        pytest.skip("no Coq on this machine; Debian's package is `coq`")
    if subprocess.run(("ocamlfind", "query", "zarith"), check=False).returncode:
        pytest.skip("no Zarith on this machine; Debian's package is `libzarith-ocaml-dev`")
    folder = tmp_path_factory.mktemp("extracted")
    for name in EXTRACTED:
        shutil.copy(SOURCES / name, folder)
        check_file(name, folder)
    return compile_program(folder)


def at_integer_order(epsilon: int, cutoff: int) -> ProfileTable:
    """Return a short table whose order the machine's theorem covers."""
    served = calibrate(epsilon=Fraction(epsilon), delta=Fraction(1, 1000), cutoff=cutoff)
    alpha = Fraction(math.floor(served.alpha) + 1)
    ln_ratio = choose_ln_ratio(
        alpha, epsilon=served.epsilon, delta_svt=served.delta_svt, cutoff=cutoff
    )
    thresholds = find_thresholds(alpha=alpha, ln_ratio=ln_ratio, first=served.thresholds[0])
    return replace(served, alpha=alpha, ln_ratio=ln_ratio, thresholds=thresholds)


def bases() -> list[ProfileTable]:
    """Return whole tables that hold."""
    kept = sorted((SOURCES / "tables").glob("*.json"))
    served = [ProfileTable.from_plain(json.loads(path.read_bytes())) for path in kept]
    small = calibrate(epsilon=Fraction(8), delta=Fraction(1, 1000), cutoff=1)
    return [*served, at_integer_order(4, 2), at_integer_order(8, 1), small]


@cache
def start_count(table: ProfileTable, cutoff: int) -> int:
    """Return the entries from which a run of hits is not too seldom, so that delta is below 1."""
    return sum(Fraction(word, WORD_RANGE) ** cutoff >= LEAST_RUN for word in table.thresholds)


def part_of(table: ProfileTable, random: Random) -> ProfileTable:
    """Return a few entries from anywhere in a table, with the delta that its first one costs."""
    cutoff = random.choice((1, table.cutoff))
    start = random.randrange(start_count(table, cutoff))
    run = Fraction(table.thresholds[start], WORD_RANGE) ** cutoff
    release = Fraction(math.ceil((1 - run) * WORD_RANGE), WORD_RANGE)
    return replace(
        table,
        cutoff=cutoff,
        delta=release + table.delta_svt,
        delta_release=release,
        thresholds=table.thresholds[start : start + random.randint(1, 4)],
    )


def up_or_down(random: Random, bits_max: int) -> int:
    """Return a power of two of either sign."""
    return random.choice((1, -1)) << random.randint(0, bits_max)


def with_other_word(table: ProfileTable, random: Random) -> ProfileTable:
    """Return the table with one word changed by a power of two."""
    words = list(table.thresholds)
    words[random.randrange(len(words))] += up_or_down(random, 40)
    return replace(table, thresholds=tuple(words))


def scaled(value: Fraction, random: Random) -> Fraction:
    """Return a value changed by one part in a power of two."""
    return value * (1 + Fraction(1, 2 * up_or_down(random, 40)))


ALTERATIONS: dict[str, Callable[[ProfileTable, Random], ProfileTable]] = {
    "nothing": lambda table, _: table,
    "a word": with_other_word,
    "the cutoff": lambda table, random: replace(table, cutoff=table.cutoff + up_or_down(random, 1)),
    "the order": lambda table, random: replace(table, alpha=table.alpha + up_or_down(random, 1)),
    "ln R": lambda table, random: replace(
        table, ln_ratio=table.ln_ratio + Fraction(up_or_down(random, 20), LN_RATIO_GRID)
    ),
    "the release's share": lambda table, random: replace(
        table, delta_release=table.delta_release + Fraction(up_or_down(random, 30), WORD_RANGE)
    ),
    "the hits' share": lambda table, random: replace(
        table, delta_svt=scaled(table.delta_svt, random)
    ),
    "delta": lambda table, random: replace(table, delta=scaled(table.delta, random)),
    "epsilon": lambda table, random: replace(table, epsilon=scaled(table.epsilon, random)),
}


def with_risen_word(table: ProfileTable, _: Random) -> ProfileTable:
    """Put the first word at the end too, above all others."""
    return replace(table, thresholds=(*table.thresholds, table.thresholds[0] + 1))


SHAPES: dict[str, Callable[[ProfileTable, Random], ProfileTable]] = {
    "no hit": lambda table, _: replace(table, cutoff=0),
    "no epsilon": lambda table, _: replace(table, epsilon=Fraction(0)),
    "no share of labels": lambda table, _: replace(table, delta_release=Fraction(0)),
    "no share of hits": lambda table, _: replace(table, delta_svt=Fraction(0)),
    "a tiny share of labels": lambda table, _: replace(
        table,
        thresholds=(WORD_RANGE - 1,),
        delta_release=table.cutoff * (RELEASE_DELTA_PER_HIT_MIN - Fraction(1, 1 << 100)),
    ),
    "delta of one": lambda table, _: replace(table, delta=Fraction(1)),
    "no words": lambda table, _: replace(table, thresholds=()),
    "a word of none": lambda table, _: replace(table, thresholds=(*table.thresholds, 0)),
    "a word of all": lambda table, _: replace(table, thresholds=(WORD_RANGE, *table.thresholds)),
    "words that rise": with_risen_word,
    "too many words": lambda table, _: replace(
        table, thresholds=table.thresholds[:1] * (2 * ENTRY_COUNT_MAX + 1)
    ),
    "order one": lambda table, _: replace(table, alpha=Fraction(1)),
    "an order above all": lambda table, _: replace(table, alpha=ALPHA_MAX + 1),
    "hits that cost nothing": lambda table, _: replace(table, ln_ratio=Fraction(0)),
}
"""For each clause of the server's shape, a table that breaks it."""


def drawn_tables(random: Random, count: int) -> list[tuple[str, ProfileTable]]:
    """Return parts of tables with what was altered in each, all whole ones among them."""
    whole = bases()
    found = [("nothing", table) for table in whole]
    while len(found) < count:
        name = random.choice(sorted(ALTERATIONS))
        table = ALTERATIONS[name](part_of(random.choice(whole), random), random)
        if table.cutoff >= 0 and table.delta_release >= 0 and table.alpha >= 1:
            found.append((name, table))
    return found


def holds(check: Callable[[], None]) -> bool:
    """Whether a check of the server passes."""
    try:
        check()
    except InvariantError:
        return False
    return True


@pytest.fixture(scope="module")
def tables() -> list[tuple[str, ProfileTable]]:
    """The same tables on every machine."""
    return drawn_tables(Random(29), TABLE_COUNT)


def numbers_of(table: ProfileTable) -> TableNumbers:
    """Return what the machine's checker decides about."""
    return table_numbers(read_table(json.dumps(table.to_plain())), title="drawn")


def test_both_checks_of_tables_agree_on_every_table(
    program: Path, tables: list[tuple[str, ProfileTable]]
) -> None:
    """The extracted checker and the server's decide alike on tables that hold and that do not."""
    check_agreement(program, tables)


@pytest.mark.long
def test_both_checks_of_tables_agree_at_length(program: Path) -> None:
    """Four times as many tables, of other draws, are decided alike too."""
    check_agreement(program, drawn_tables(Random(31), TABLE_COUNT_OF_LONG))


def check_agreement(program: Path, tables: list[tuple[str, ProfileTable]]) -> None:
    """Check that both decide alike on every table, and that no kind is all held or all refused."""
    own = [holds(partial(hit_table.check, table)) for _, table in tables]
    other = verdicts(program, (line("table", numbers_of(table)) for _, table in tables))
    apart = [table for table, a, b in zip(tables, own, other, strict=True) if a != b]
    assert not apart, apart[0]
    refused = Counter(name for (name, _), held in zip(tables, own, strict=True) if not held)
    assert refused["nothing"] == 0
    assert min(refused[name] for name in ALTERATIONS if name != "nothing") > len(tables) // 100
    assert sum(own) > len(tables) // 5


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_both_checks_ask_for_the_same_shape(program: Path, name: str) -> None:
    """A table that breaks one clause of the server's shape is refused by both checks."""
    whole = bases()[-1]
    broken = SHAPES[name](whole, Random(29))
    assert not holds(partial(hit_table.check, broken))
    assert verdicts(program, [line("table", numbers_of(each)) for each in (whole, broken)]) == [
        True,
        False,
    ]


def test_the_tables_that_serve_are_accepted_by_the_extracted_checker(program: Path) -> None:
    """A whole table as the server makes it, at an order that is no integer, is accepted."""
    served = calibrate(epsilon=Fraction(1), delta=Fraction(1, 10**6), cutoff=5)
    assert served.alpha.denominator > 1
    given = [numbers_of(served), numbers_of(with_other_word(served, Random(29)))]
    assert verdicts(program, [line("table", each) for each in given]) == [True, False]


def plain_line(table: ProfileTable) -> str:
    """Return what the program reads of a table, its draws included."""
    return table_line(read_table(json.dumps(table.to_plain())), title="drawn")


GRID = [
    (epsilon, cutoff)
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
    for cutoff in (1, 5, 20)
]


def is_shared_at_once(place: int) -> bool:
    """Tell for a place of the grid whether the suite tries it shared or alone.

    Neighbours in the grid are not alike; the long audits try the other way at each place.
    """
    return (place // 3 + place % 3) % 2 == 0


@pytest.mark.parametrize(
    "others", [False, pytest.param(True, marks=pytest.mark.long)], ids=["half", "other half"]
)
def test_the_tables_that_serve_a_grid_of_budgets_are_accepted(
    program: Path, *, others: bool
) -> None:
    """At each epsilon and cutoff, alone or shared by draws at the default shares; none less."""
    delta = Fraction(1, 10**6)
    served = [
        calibrate(
            epsilon=epsilon,
            delta=delta,
            cutoff=cutoff,
            draws=(Draw(epsilon / 10), Draw(3 * epsilon / 10))
            if is_shared_at_once(place) != others
            else (),
        )
        for place, (epsilon, cutoff) in enumerate(GRID)
    ]
    assert verdicts(program, map(plain_line, served)) == [True] * len(GRID)
    lowered = [with_word_lowered(table) for table in served]
    assert verdicts(program, map(plain_line, lowered)) == [False] * len(GRID)


def with_word_lowered(table: ProfileTable) -> ProfileTable:
    """Return the table with its middle word lowered by a thousandth."""
    words, middle = list(table.thresholds), len(table.thresholds) // 2
    words[middle] -= words[middle] // 1000
    return replace(table, thresholds=tuple(words))


def test_both_checks_agree_on_tables_that_draws_share(program: Path) -> None:
    """Altered draws, words and deltas are decided alike, and a draw left out is refused."""
    random, draws = Random(29), (Draw(Fraction(4, 5)), Draw(Fraction(12, 5)))
    whole = calibrate(epsilon=Fraction(8), delta=Fraction(1, 1000), cutoff=1, draws=draws)
    alone = calibrate(epsilon=Fraction(8), delta=Fraction(1, 1000), cutoff=1)
    forgotten = [replace(alone, draws=draws), replace(whole, draws=(*draws, draws[0]))]
    full_range = replace(whole, draws=(draws[0], replace(draws[1], has_bounded_range=False)))
    tables = [whole, *forgotten, full_range]
    for _ in range(SHARED_COUNT):
        altered = ALTERATIONS[random.choice(sorted(ALTERATIONS))](part_of(whole, random), random)
        fewer = altered.draws[: random.randrange(3)]
        tables.append(replace(altered, draws=random.choice((altered.draws, fewer))))
    tables = [each for each in tables if each.cutoff >= 0 and each.alpha >= 1]
    own = [holds(partial(hit_table.check, table)) for table in tables]
    assert verdicts(program, map(plain_line, tables)) == own
    assert own[: 1 + len(forgotten)] == [True, False, False]
    assert min(own.count(True), own.count(False)) > SHARED_COUNT // 10


def test_the_moment_of_draws_is_above_the_servers() -> None:
    """The moment that the theorem takes for the draws covers the server's charge for them."""
    for path in sorted((SOURCES / "shared_tables").glob("*.json")):
        table = ProfileTable.from_plain(json.loads(path.read_bytes()))
        moment = account_numbers(read_table(path.read_text(encoding="utf-8"))).moment
        with localcontext(Context(prec=60)):
            logarithm = (Decimal(moment.numerator) / Decimal(moment.denominator)).ln()
        assert 0 <= Fraction(logarithm) - log_moment(table.draws, table.alpha) < MOMENT_MARGIN


def test_the_tables_that_draws_share_are_the_servers() -> None:
    """The kept tables are what a server calibrates for the default shares, to the byte."""
    for path in sorted((SOURCES / "shared_tables").glob("*.json")):
        kept = ProfileTable.from_plain(json.loads(path.read_bytes()))
        made = calibrate(
            epsilon=kept.epsilon, delta=kept.delta, cutoff=kept.cutoff, draws=kept.draws
        )
        assert json.dumps(made.to_plain(), separators=(",", ":")) == path.read_text("utf-8")
        shares = [draw.epsilon / kept.epsilon for draw in kept.draws]
        assert shares == [Fraction(1, 10), Fraction(3, 10)]


def test_the_kernel_agrees_with_the_extracted_program(
    program: Path, tables: list[tuple[str, ProfileTable]]
) -> None:
    """Coq's own machine computes the program's verdict, on twenty of the tables."""
    numbers = [numbers_of(table) for _, table in tables[-KERNEL_COUNT:]]
    said = verdicts(program, (line("table", each) for each in numbers))
    assert len(set(said)) == 2
    text = KERNEL_FILE.format(
        definitions="\n".join(
            f"Definition t{place} : table := {record(each)}." for place, each in enumerate(numbers)
        ),
        names="; ".join(f"t{place}" for place in range(len(numbers))),
        verdicts="; ".join(map(str, said)).lower(),
    )
    (program.parent / "kernel.v").write_text(text, encoding="utf-8")
    check_file("kernel.v", program.parent)


def altered_certificate(table: CertifiedTable, random: Random) -> CertifiedTable:
    """Return a table with a word, a node, a slope at the end, c or delta changed."""
    certificate = table.certificate
    words, nodes = list(table.thresholds), list(certificate.nodes)
    words[random.randrange(len(words))] += up_or_down(random, 40)
    nodes[random.randrange(1, len(nodes))] += up_or_down(random, 24)
    last = certificate.slopes[-1]
    steeper = (*last[:-1], last[-1] + (1 << random.randint(0, 60)))
    return random.choice(
        (
            replace(table, thresholds=tuple(words)),
            replace(table, certificate=replace(certificate, nodes=tuple(sorted(nodes)))),
            replace(
                table,
                certificate=replace(certificate, slopes=(*certificate.slopes[:-1], steeper)),
            ),
            replace(
                table,
                certificate=replace(
                    certificate, factor=certificate.factor + up_or_down(random, 20)
                ),
            ),
            replace(table, delta=scaled(table.delta, random)),
        )
    )


def test_a_certificate_that_serves_is_accepted_by_the_extracted_checker(program: Path) -> None:
    """Whatever the server's check accepts, altered or not, the extracted one accepts."""
    text = (SOURCES / "certified_tables" / "epsilon_4_cutoff_1.json").read_bytes()
    served, random = CertifiedTable.from_plain(json.loads(text)), Random(29)
    tables = [served, *(altered_certificate(served, random) for _ in range(CERTIFICATE_COUNT))]
    own = [holds(partial(certified_table.check, table)) for table in tables]
    other = verdicts(
        program, (line("certificate", certificate_numbers(table.to_plain())) for table in tables)
    )
    assert all(b for a, b in zip(own, other, strict=True) if a)
    assert sum(own) > CERTIFICATE_COUNT // 10
    assert other.count(False) > CERTIFICATE_COUNT // 10
