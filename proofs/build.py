"""Check every proof from nothing, then that faults are refused: ``make proofs``.

It fails on a proof that does not pass, an assumption, a table that is refused, an
altered table that is not, and a planted fault that Coq lets pass.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofs.certificate import (
    account_numbers,
    altered_account,
    read_table,
    table_line,
    table_numbers,
    write_certificate,
)
from proofs.certified import altered, certificate_numbers, write_certified
from proofs.extracted import ExtractionError, compile_program, verdicts
from proofs.terms import line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import DataclassInstance

SOURCES: Final = Path(__file__).parent
FOLDER: Final = Path("build/proofs")
COMPILER: Final = ("coqc", "-w", "none", "-Q", ".", "Conclave")
CLOSED: Final = "Closed under the global context"
FORBIDDEN: Final = re.compile(
    r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Unset Guard Checking)\b"
)
STATEMENT: Final = re.compile(
    r"^(?:Lemma|Theorem|Corollary|Let|Definition|Fixpoint) (\w+)", re.MULTILINE
)
COMMENT: Final = re.compile(r"\(\*.*?\*\)", re.DOTALL)
SECONDS_MAX: Final = 600
ALTERATIONS: Final = (1, -1)
SHARED_IN_KERNEL: Final = "epsilon_4_cutoff_1"
IN_KERNEL: Final = "epsilon_4_cutoff_1"
"""The table with a certificate that the kernel decides about too; others would take minutes."""
REFUSED_IN_KERNEL: Final = (
    "first_word_down",
    "price_of_a_hit_less",
    "factor_up",
    "delta_less",
    "node_moved",
)


class ProofError(Exception):
    """Something that was to be proved or refused was not."""


def compile_file(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Let Coq check one file."""
    command = (*COMPILER, name)
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )


def check_file(name: str, folder: Path) -> None:
    """Demand that a file passes and that what it prints has no assumption."""
    text = (folder / name).read_text(encoding="utf-8")
    if found := FORBIDDEN.search(COMMENT.sub("", text)):
        message = f"{name} contains {found.group()}"
        raise ProofError(message)
    done = compile_file(name, folder)
    if done.returncode:
        message = f"{name} does not pass:\n{done.stderr}"
        raise ProofError(message)
    stated = re.findall(r"^Print Assumptions (\w+)\.", text, re.MULTILINE)
    if done.stdout.count(CLOSED) != len(stated):
        message = f"{name} assumes something:\n{done.stdout}"
        raise ProofError(message)
    for theorem in stated:
        print(f"{name}: {theorem}: {CLOSED}")


def sources() -> list[str]:
    """Return the files to check, each after those that it needs."""
    lines = (SOURCES / "_CoqProject").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.endswith(".v")]


def copy_sources(folder: Path) -> None:
    """Make a folder that holds the sources and nothing that was made of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in sources():
        shutil.copy(SOURCES / name, folder)


def check_tables(folder: Path) -> None:
    """Demand that every table is accepted, and that none is with a hit more paid by none."""
    for path in sorted((SOURCES / "tables").glob("*.json")):
        table = read_table(path.read_text(encoding="utf-8"))
        name = f"{path.stem}.v"
        (folder / name).write_text(write_certificate(table, title=path.name), encoding="utf-8")
        check_file(name, folder)
        (folder / "altered.v").write_text(_altered(path.stem, table), encoding="utf-8")
        check_file("altered.v", folder)


def check_certificates(folder: Path) -> None:
    """Demand that the extracted program accepts every table, and no alteration.

    The kernel decides once more about one table that draws share, and one with a certificate.
    """
    program = compile_program(folder)
    for path in sorted((SOURCES / "tables").glob("*.json")):
        table = read_table(path.read_text(encoding="utf-8"))
        if verdicts(program, [table_line(table, title=path.name)]) != [True]:
            message = f"the extracted program refuses {path.name}"
            raise ProofError(message)
    for path in sorted((SOURCES / "shared_tables").glob("*.json")):
        table = read_table(path.read_text(encoding="utf-8"))
        _check_shared(program, table, title=path.name)
        if path.stem == SHARED_IN_KERNEL:
            text = write_certificate(table, title=path.name)
            (folder / "shared.v").write_text(text, encoding="utf-8")
            check_file("shared.v", folder)
    for path in sorted((SOURCES / "certified_tables").glob("*.json")):
        table = read_table(path.read_text(encoding="utf-8"))
        _check_certificate(program, table, title=path.name)
        if path.stem == IN_KERNEL:
            text = write_certified(table, title=path.name)
            (folder / f"{path.stem}.v").write_text(text, encoding="utf-8")
            check_file(f"{path.stem}.v", folder)
            head = (SOURCES / "certified_altered.v.in").read_text(encoding="utf-8")
            facts = _facts({name: f"refused {name}" for name in REFUSED_IN_KERNEL})
            text = head.replace("TABLE", path.stem) + facts
            (folder / "altered.v").write_text(text, encoding="utf-8")
            check_file("altered.v", folder)


def _check_shared(program: Path, table: dict[str, str | list[str]], *, title: str) -> None:
    """Demand that the program accepts a table that draws share, and refuses each alteration."""
    numbers = table_numbers(table, title=title), account_numbers(table)
    changed = altered_account(*numbers)
    _check_verdicts(program, "account", {"": numbers, **changed}, title=f"shared {title}")


def _check_certificate(program: Path, table: dict[str, str | list[str]], *, title: str) -> None:
    """Demand that the program accepts a certificate and refuses each alteration."""
    numbers = certificate_numbers(table)
    changed = {name: (each,) for name, each in altered(numbers).items()}
    _check_verdicts(program, "certificate", {"": (numbers,), **changed}, title=title)


def _check_verdicts(
    program: Path, kind: str, given: Mapping[str, tuple[DataclassInstance, ...]], *, title: str
) -> None:
    """Demand that the first of what is given is accepted, and the rest, by name, refused."""
    found = verdicts(program, [line(kind, *records) for records in given.values()])
    if not found[0]:
        message = f"the extracted program refuses {title}"
        raise ProofError(message)
    print(f"{title}: accepted by the extracted program")
    for name, accepted in zip(list(given)[1:], found[1:], strict=True):
        if accepted:
            message = f"{title}: accepted with {name}"
            raise ProofError(message)
        print(f"{title}: refused with {name}")


def _facts(stated: dict[str, str]) -> str:
    """Return facts that the kernel decides by computing ``false``."""
    proof = "\nProof. vm_cast_no_check (eq_refl false). Qed.\n"
    return "".join(f"Fact {name}_refused : {fact}.{proof}" for name, fact in stated.items())


def _altered(stem: str, table: dict[str, str | list[str]]) -> str:
    """Return a Coq file which proves that alterations of a table are refused."""
    size = len(table["thresholds"])
    places = (0, 1, size // 4)
    stated = {
        f"word_{place}_{'up' if step > 0 else 'down'}": (
            f"refused (with_word {place} {'N.succ' if step > 0 else 'N.pred'})"
        )
        for place in places
        for step in ALTERATIONS
    }
    stated["one_hit_more"] = "refused (with_cutoff (cutoff served + 1))"
    stated["one_order_less"] = "refused (with_order (fst (order served) - 1, snd (order served)))"
    head = (SOURCES / "altered.v.in").read_text(encoding="utf-8").replace("TABLE", stem)
    return head + _facts(stated)


def check_faults(folder: Path) -> None:
    """Demand that Coq refuses every planted fault where it is said to."""
    planted = tomllib.loads((SOURCES / "faults.toml").read_text(encoding="utf-8"))["fault"]
    for fault in planted:
        copy_sources(folder)
        path = folder / fault["file"]
        text = path.read_text(encoding="utf-8")
        if text.count(fault["old"]) != 1:
            message = f"{fault['file']} has no single place for: {fault['says']}"
            raise ProofError(message)
        path.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
        place = _first_refusal(folder, unchanged_before=fault["file"])
        if place != (fault["refused_in"], fault["refused_at"]):
            message = f"planted fault: {fault['says']}: refused at {place}"
            raise ProofError(message)
        print(f"refused at {fault['refused_at']}: {fault['says']}")


def _first_refusal(folder: Path, *, unchanged_before: str) -> tuple[str, str] | None:
    """Compile in order; return the file and the statement that Coq refuses first."""
    names = sources()
    changed = names.index(unchanged_before)
    for name in names[:changed]:
        for made in FOLDER.glob(f"{Path(name).stem}.vo*"):
            shutil.copy2(made, folder)
    for name in names[changed:]:
        done = compile_file(name, folder)
        if done.returncode:
            found = re.search(r"line (\d+)", done.stderr)
            line = int(found.group(1)) if found else 0
            before = "\n".join((folder / name).read_text(encoding="utf-8").splitlines()[:line])
            return name, STATEMENT.findall(before)[-1]
    return None


def main() -> int:
    """Check everything; return the exit status."""
    copy_sources(FOLDER)
    try:
        for name in sources():
            check_file(name, FOLDER)
        check_faults(FOLDER.with_name("proofs-faults"))
        check_tables(FOLDER)
        check_certificates(FOLDER)
    except (ProofError, ExtractionError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
