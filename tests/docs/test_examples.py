"""The examples are configurations that load, plan and stand without their data."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from app import cli
from app.data.sources.sources import read_rows
from app.ledger.entries.chain import GENESIS, next_entry, public_entry
from app.ledger.entries.entry_kinds import ReleaseHalted, ShareCharged
from app.settings.settings import load_settings
from tests.docs.pages import PAGES, ROOT, examples, page_id

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


def test_there_are_examples() -> None:
    """Two real data sets are configured, and a configuration to copy for each way."""
    assert {"adult.toml", "own-data.toml", "publish.toml", "skin.toml"} <= {
        path.name for path in EXAMPLES
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=page_id)
def test_an_example_loads(path: Path) -> None:
    """An example is a valid configuration, whether or not its data are there."""
    settings = load_settings(path, {})
    assert settings.server.keys_file is None


@pytest.mark.parametrize("path", EXAMPLES, ids=page_id)
def test_an_example_can_be_planned_without_its_data(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``conclave plan`` gives every parameter of an example in a folder without data."""
    copy = shutil.copy(path, tmp_path)
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["data"].get("rows", 30_000)
    # One made-up rule is tried: how many are says nothing about the example.
    options = ["--rows", str(rows), "--populations", "1", "--json"]
    assert cli.run(["plan", "--config", str(copy), *options]) in {0, 1}
    assert json.loads(capsys.readouterr().out)


@pytest.mark.data
def test_the_numbers_of_adult_are_those_of_its_public_rows(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command in examples/adult.toml writes its features and lists from public rows."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with (data_folder / "adult" / "test.csv").open(encoding="utf-8") as file:
        (tmp_path / "public.csv").write_text("".join(islice(file, 1001)), encoding="utf-8")
    text = (ROOT / "examples" / "adult.toml").read_text(encoding="utf-8")
    (command,) = re.findall(r"^#     conclave (init .*)$", text, re.MULTILINE)
    assert cli.run(command.split()) == 0
    computed = tomllib.loads((tmp_path / "conclave.toml").read_text(encoding="utf-8"))
    written = tomllib.loads(text)
    for key in ("label", "classes", "missing", "features"):
        assert written["data"][key] == computed["data"][key]
    assert written["hypotheses"]["tests"] == computed["hypotheses"]["tests"]


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "skin"])
def test_the_rows_of_an_example_fit_its_schema(data_folder: Path, name: str) -> None:
    """Every row of the real data set is read, as many as the configuration says."""
    settings = load_settings(
        ROOT / "examples" / f"{name}.toml",
        {"CONCLAVE_DATA__SOURCE": str(data_folder / name / "train.csv")},
    )
    rows = read_rows(
        settings.source, settings.data.public_schema(), rows_expected=settings.data.rows
    )
    assert rows.count == settings.data.rows


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_piece_of_configuration_in_a_page_is_toml(page: Path) -> None:
    """What a page shows as TOML can be read as TOML."""
    for example in examples(page, "toml"):
        tomllib.loads(example)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_document_in_a_page_is_json(page: Path) -> None:
    """What a page shows as JSON can be read as JSON."""
    for example in examples(page, "json"):
        json.loads(example)


def test_the_hash_in_the_ledgers_page_is_the_ledgers() -> None:
    """The function that the page gives to strangers computes the hashes of the chain."""
    (program,) = examples(ROOT / "docs" / "ledger-format.md", "python")
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 -- the page's own example is what is tested
    first = next_entry(GENESIS, ShareCharged(mechanism="answers", epsilon="3/5", delta="1e-6"))
    second = next_entry(first.head, ReleaseHalted(reason="caf\u00e9"))
    for entry in (first, second):
        assert names["entry_hash"](public_entry(entry)) == entry.hash
