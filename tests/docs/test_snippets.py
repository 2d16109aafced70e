"""No snippet stands on a page unrun: each has a test that runs or reads it, by name.

A page's snippet that nothing runs is found here, and so is one more than there were.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
import yaml

from app import cli
from app.settings.settings import Settings
from tests.docs.pages import PAGES, ROOT, commands, examples, languages, page_id, text
from tests.docs.test_followed import RUN_ELSEWHERE

if TYPE_CHECKING:
    from pathlib import Path

TESTS = ROOT / "tests" / "docs"
# Languages whose every example is read by the tests below, or by test_examples.py.
READ = {"toml", "json", "yaml"}
# Pages whose every command is run: the test takes them from the page itself.
FOLLOWED = {
    "README.md": "test_followed.py",
    "docs/http.md": "test_followed.py",
    "docs/init.md": "test_followed.py",
    "docs/keys.md": "test_followed.py",
    "docs/learn.md": "test_followed.py",
    "docs/ledger-format.md": "test_followed.py",
    "docs/operations.md": "test_operations.py",
    "docs/planning.md": "test_followed.py",
    "docs/recipes.md": "test_recipes.py",
    "docs/scores.md": "test_followed.py",
    "docs/start.md": "test_followed.py",
    "docs/statistics.md": "test_followed.py",
}
# Commands of other pages, and where what they run is run.
RUN_BY = {
    "conclave append --config conclave.toml february.csv": (
        "tests/http/end_to_end/test_generations.py"
    ),
    "conclave append --config conclave.toml --epsilon 0.9 march.csv": (
        "tests/unit/release/terms/test_generation_budgets.py"
    ),
    "conclave append --config conclave.toml march.csv": "tests/unit/cli/test_erase_persons.py",
    "conclave generations --config conclave.toml": "tests/http/end_to_end/test_generations.py",
    "conclave erase --config conclave.toml --from forget.txt": "tests/unit/cli/test_erase.py",
    "conclave erase --config conclave.toml --id 4711 --now": "tests/unit/cli/test_erase.py",
    "conclave correct --config conclave.toml corrected.csv": "tests/unit/cli/test_erase.py",
    "conclave audit --config conclave.toml --quick": "tests/unit/cli/audit/test_command.py",
    "conclave check --config conclave.toml [--public public.csv] [--json]": (
        "tests/unit/cli/test_check.py"
    ),
    "conclave statement --config conclave.toml": "tests/unit/cli/test_statement.py",
    "make bench": "benchmarks/figures.py",
    "make bench-utility": "benchmarks/utility/__main__.py",
    "make bench-utility ARGS=panel": "benchmarks/utility/panel.py",
    'make bench-utility ARGS="panel --quick"': "benchmarks/utility/panel.py",
    "pip install 'conclave[s3]'": "tests/unit/data/sources/test_object_store.py",
    "make image": "tests/deploy/test_container.py",
    "make image-replicas": "tests/deploy/test_compose_replicas.py",
    "deploy/postgresql/make-secrets secrets": "tests/deploy/test_compose_replicas.py",
    "docker compose --profile postgresql up --wait balancer": (
        "tests/deploy/test_compose_replicas.py"
    ),
    "conclave ledger backup --config conclave.toml -o backup.db": (
        "tests/unit/cli/test_ledger_copy.py"
    ),
    "conclave ledger restore --config restored.toml backup.db": (
        "tests/unit/cli/test_ledger_copy.py"
    ),
    "pip wheel --no-deps ./clients/python": "tests/deploy/test_wheels.py",
    "pip install ./conclave_client-*.whl": "tests/deploy/test_wheels.py",
    "docker compose run --rm -T init --header data/records.csv --public data/public.csv "
    "--label outcome --classes no,yes -o - > conclave.toml": "tests/deploy/test_container.py",
    "docker compose run --rm keys add --name ward --role query": "tests/deploy/test_container.py",
    "docker compose up --detach release": "tests/deploy/test_container.py",
    "docker compose up --detach backup": "tests/deploy/test_container.py",
    "docker compose up demo": "tests/deploy/test_container.py",
    "docker compose up release": "tests/deploy/test_container.py",
    "docker compose --file docker-compose.yml --file deploy/grpc/compose.yml up release": (
        "tests/deploy/test_container.py"
    ),
    "docker compose --profile monitoring up demo prometheus grafana": (
        "tests/deploy/test_container.py"
    ),
    "CONCLAVE_SCRAPE=release CONCLAVE_READ_KEY_FILE=./read.key docker compose "
    "--profile monitoring up release prometheus grafana": "tests/deploy/test_container.py",
    "python examples/staircases.py > examples/staircases.csv": "tests/docs/test_hypotheses.py",
    "conclave serve --config examples/staircases.toml": "tests/docs/test_hypotheses.py",
    ".venv/bin/python benchmarks/timing.py --queries 100000 --http-queries 30000 "
    "--variant-queries 5000": "tests/timing/test_in_process.py",
}
# How many examples of other languages a page has, and the tests that run or compare them.
RUN = {
    ("docs/classifier-format.md", "python"): (2, "test_classifier_format.py"),
    ("docs/client.md", "python"): (3, "test_client.py"),
    ("docs/embed.md", "js"): (1, "../browser/test_embedded.py"),
    ("docs/estimator.md", "python"): (1, "test_estimator.py"),
    ("docs/http.md", "text"): (1, "test_http.py"),
    ("docs/hypotheses.md", "python"): (1, "test_hypotheses.py"),
    ("docs/init.md", "text"): (1, "test_followed.py"),
    ("docs/keys.md", "text"): (1, "test_snippets.py"),
    ("docs/ledger-format.md", "python"): (1, "test_exported_ledger.py"),
    ("docs/logs.md", "text"): (1, "test_snippets.py"),
    ("docs/metrics.md", "text"): (1, "test_snippets.py"),
    ("docs/operations.md", "text"): (2, "test_operations.py"),
    ("docs/planning.md", "text"): (1, "test_snippets.py"),
    ("docs/recipes.md", "python"): (2, "test_recipes.py"),
    ("docs/postgresql.md", "sql"): (1, "test_snippets.py"),
    ("docs/sources.md", "text"): (3, "test_snippets.py"),
    ("docs/statement.md", "text"): (1, "test_snippets.py"),
}
WHOLE = """
[release]
name = "whole"
[data]
source = "records.csv"
label = "income"
classes = ["<=50K", ">50K"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [17, 90]
[[data.features]]
name = "hours"
kind = "numeric"
bounds = [0, 99]
[[data.features]]
name = "workclass"
kind = "categorical"
categories = ["Private", "State-gov"]
[hypotheses]
class = "trees"
[ledger]
url = "sqlite:///whole.db"
"""
NO_FENCE = re.compile(r"^ *(~~~|````)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_example_names_its_language(page: Path) -> None:
    """A fence without a language would be run by nothing."""
    assert "" not in languages(page)
    assert not NO_FENCE.search(text(page))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_example_has_a_test(page: Path) -> None:
    """Whatever is not read by its language is counted here, beside the test that runs it."""
    counted = Counter(each for each in languages(page) if each not in READ | {"console"})
    expected = {
        language: count for (on, language), (count, _) in RUN.items() if on == page_id(page)
    }
    assert counted == expected


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_command_is_run(page: Path) -> None:
    """A page is followed whole, or each of its commands is run by a test that is named."""
    if page_id(page) in FOLLOWED:
        assert page.name in text(TESTS / FOLLOWED[page_id(page)])
        return
    unrun = [command for command in commands(page) if command not in RUN_BY | RUN_ELSEWHERE]
    assert not unrun, "\n".join(unrun)


def test_every_test_that_is_named_is_there() -> None:
    """No entry of these tables outlives its test, its page or its command."""
    named = {*FOLLOWED.values(), *(test for _, test in RUN.values())}
    assert all((TESTS / name).exists() for name in named)
    assert all((ROOT / path).exists() for path in RUN_BY.values())
    assert {ROOT / page for page in [*FOLLOWED, *(page for page, _ in RUN)]} <= set(PAGES)
    typed = {command for page in PAGES for command in commands(page)}
    assert set(RUN_BY) <= typed


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_piece_of_configuration_is_one(page: Path) -> None:
    """Put into a whole configuration, every piece of TOML has known keys and values that fit."""
    for example in examples(page, "toml"):
        tables = tomllib.loads(WHOLE)
        piece = tomllib.loads(example, parse_float=Decimal)
        merged: dict[str, object] = {
            name: {**tables.get(name, {}), **piece.get(name, {})} for name in {*tables, *piece}
        }
        Settings.read(merged)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_yaml_can_be_read(page: Path) -> None:
    """What a page shows as YAML can be read as YAML."""
    for example in examples(page, "yaml"):
        assert yaml.safe_load(example)


def test_the_plan_of_the_page_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The table on the page of planning is what the command prints of that example."""
    example = str(ROOT / "examples" / "own-data.toml")
    assert cli.run(["plan", "--config", example, "--rows", "30000", "--verbose"]) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    (table,) = examples(ROOT / "docs" / "planning.md", "text")
    for line in table.splitlines():
        assert line.split() in printed


def test_the_statement_of_the_page_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """What the page on statements shows is what the command prints of the example."""
    example = str(ROOT / "examples" / "own-data.toml")
    assert cli.run(["statement", "--config", example]) == 0
    printed = capsys.readouterr().out.splitlines()
    (shown,) = examples(ROOT / "docs" / "statement.md", "text")
    assert set(shown.splitlines()) <= set(printed)


@pytest.mark.parametrize(
    ("page", "said", "module"),
    [
        ("keys.md", "RateLimit-Policy", "app/http"),
        ("metrics.md", "conclave_ledger_sequence", "app/http"),
        ("sources.md", "is not a number", "app/data"),
        ("sources.md", "where numbers have a comma", "app/data"),
        ("sources.md", "name it alike in one of them", "app/data"),
    ],
)
def test_what_a_page_quotes_is_said(page: str, said: str, module: str) -> None:
    """A header, a metric and an error that are shown as text stand in the code that sends them."""
    assert said.removeprefix("conclave_") in "".join(examples(ROOT / "docs" / page, "text"))
    sources = "".join(text(path) for path in (ROOT / module).rglob("*.py"))
    assert said in sources


def test_the_grants_of_the_page_are_those_that_servers_run_with() -> None:
    """What the page of PostgreSQL grants is what replicas have in the test that kills them."""
    (script,) = examples(ROOT / "docs" / "postgresql.md", "sql")
    granted = re.findall(r"^(GRANT .+ TO) ", script, re.MULTILINE)
    assert len(granted) == 4
    run = text(ROOT / "tests" / "crash" / "replicas" / "test_replicas.py")
    assert all(f"{grant} {{role}}" in run for grant in granted)


def test_the_lines_of_the_logs_page_are_lines_of_a_log() -> None:
    """Each is one JSON object, of an event that the page explains."""
    page = ROOT / "docs" / "logs.md"
    for line in "".join(examples(page, "text")).splitlines():
        assert f"`{json.loads(line)['event']}`" in text(page)
