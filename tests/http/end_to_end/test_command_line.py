"""The commands that read what a server wrote, or ask one that runs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import httpx
import pytest

from app.cli import run
from tests.builders.server.http_release import ROW_COUNT, agreed, split, write_rows
from tests.builders.server.nursery import started
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

HASH = "[0-9a-f]{64}"


def _run(arguments: Sequence[str | Path]) -> int:
    """Run a command of ours in this process."""
    return run([str(argument) for argument in arguments])


def test_query_copies_a_table_with_its_answers(
    opened: OpenedRelease, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Out come the input's columns, then five of the answer's, in order, for every row."""
    questions = tmp_path / "questions.csv"
    questions.write_text(
        'id,group,age,"a, b"\n7,common,80.5,x\n8,common,3,"y,z"\n9,rare,3,\n10,common,?,w\n'
        "11,common,80.5,again\n12,rare,4,\n13,rare,5,\n14,common,81,late\n",
        encoding="utf-8",
    )
    with serving(opened().config) as server:
        assert _run(["query", "--url", server.address, questions]) == 1
        first = capsys.readouterr()
        assert _run(["query", "--url", server.address, questions, "-o", tmp_path / "out.csv"]) == 1
        second = (tmp_path / "out.csv").read_text(encoding="utf-8")
        following = [line for line in server.errors().splitlines() if line.startswith("next: ")]
        told = f"next: curl -s {server.address}/query -H 'Content-Type: application/json' -d "
    assert [line[: len(told)] for line in following] == [told]
    assert first.out == (
        'id,group,age,"a, b",query_id,label,stable,phase,replayed\n'
        "7,common,80.5,x,1,yes,true,ensemble,false\n"
        '8,common,3,"y,z",2,no,true,ensemble,false\n'
        "9,rare,3,,3,,false,ensemble,false\n"
        "10,common,?,w,4,no,true,ensemble,false\n"
        "11,common,80.5,again,1,yes,true,ensemble,true\n"
        "12,rare,4,,5,,false,ensemble,false\n"
        "13,rare,5,,6,,false,ensemble,false\n"
        "14,common,81,late,,,,,\n"
    )
    assert second == first.out.replace(",false\n", ",true\n")
    answered, refused = first.err.splitlines()
    assert answered == "conclave: 7 rows answered"
    assert refused.startswith("conclave: 1 rows refused: the release has halted")


def test_verify_accounts_for_what_was_answered(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verification repeats the budget's numbers, beside a server that runs and after it."""
    release = opened()
    with serving(release.config) as server:
        httpx.post(f"{server.address}/query", json={"features": agreed(0)})
        noted = httpx.get(f"{server.address}/ledger/head").json()["hash"]
        httpx.post(f"{server.address}/query", json={"features": split(0)})
        assert _run(["verify", "--config", release.config, "--expect-head", noted]) == 0
    line = capsys.readouterr().out
    assert re.fullmatch(
        f"verified: sequence 7, head {HASH}, answered 2, unstable 1, "
        r"charged epsilon 2\.4, delta 9\.999995\d+e-13\n",
        line,
    )
    assert _run(["verify", "--config", release.config, "--expect-head", "0" * 64]) == 1
    assert capsys.readouterr().err == f"conclave: no entry has the expected hash {'0' * 64}\n"


def test_verify_and_export_do_without_the_source(
    opened: OpenedRelease, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exported classifier is the served one, and neither command reads the rows."""
    release = opened(answers={"queries": "1"})
    assert _run(["export", "--config", release.config, "--format", "json"]) == 1
    assert capsys.readouterr().err == (
        "conclave: no classifier is published yet; export it after the switch\n"
    )
    with serving(release.config) as server:
        httpx.post(f"{server.address}/query", json={"features": agreed(0)})
        httpx.post(f"{server.address}/query", json={"features": agreed(1)}, timeout=60)
        served = httpx.get(f"{server.address}/classifier")
    release.source.unlink()
    exported = tmp_path / "classifier.json"
    assert _run(["export", "--config", release.config, "--format", "json", "-o", exported]) == 0
    assert exported.read_bytes() == served.content
    assert _run(["export", "--config", release.config, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == served.json()
    assert _run(["verify", "--config", release.config]) == 0


@pytest.mark.parametrize("spoiled", ["rows", "a privacy parameter", "the schema"])
def test_serve_refuses_another_release_in_one_line(opened: OpenedRelease, spoiled: str) -> None:
    """``serve`` on a ledger of something else ends with exit code 2 and one line of why."""
    release = opened()
    restore = "restore it, or give the new release a name of its own"
    text = release.config.read_text(encoding="utf-8")
    if spoiled == "rows":
        write_rows(release.source, [("1", "rare", "no")] * ROW_COUNT)
        line = (
            "conclave: data.source: holds other rows than those that the ledger's release was "
            f"opened on; {restore}"
        )
    elif spoiled == "a privacy parameter":
        release.config.write_text(text.replace("epsilon = 6", "epsilon = 7"), encoding="utf-8")
        line = (
            "conclave: privacy.epsilon: the ledger's release was opened with 6, the "
            f"configuration says 7; {restore}"
        )
    else:
        release.config.write_text(text.replace('"no", "yes"', '"yes", "no"'), encoding="utf-8")
        line = (
            'conclave: data.classes: the ledger\'s release was opened with ["no","yes"], the '
            f'configuration says ["yes","no"]; {restore}'
        )
    process = started(release.config)
    assert process.wait() == 2
    where, why = process.errors().splitlines()  # the first line is the one on stdout
    assert where.startswith("conclave: opening members on http://")
    assert why == line
