"""The alert rules fire where they must and nowhere else, by Prometheus' own programs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.deploy.promtool import PROMETHEUS, promtool, unknown_parts

if TYPE_CHECKING:
    from pathlib import Path

ALERTS = PROMETHEUS / "alerts.yml"
TESTS = "alerts.test.yml"
NEVER = "conclave_ledger_sequence < 0"
ALWAYS = "group by (job, instance) ({job='conclave'})"


def rules() -> list[dict[str, Any]]:
    """Return the rules as shipped."""
    (group,) = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return list(group["rules"])


NAMES = [rule["alert"] for rule in rules()]


def run_tests(folder: Path, changed: list[dict[str, Any]]) -> int:
    """Run the shipped rule tests on changed rules, and return how that ended."""
    group = {"groups": [{"name": "conclave", "rules": changed}]}
    (folder / ALERTS.name).write_text(yaml.safe_dump(group), encoding="utf-8")
    shutil.copy(PROMETHEUS / TESTS, folder)
    return promtool("test", "rules", folder / TESTS).returncode


def test_the_rules_are_tested_as_they_are_shipped() -> None:
    """`promtool test rules` passes on the shipped files."""
    tested = promtool("test", "rules", PROMETHEUS / TESTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("planted", [NEVER, ALWAYS])
@pytest.mark.parametrize(
    "name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.long) for name in NAMES[1:])]
)
def test_a_rule_that_never_or_always_fires_fails_its_tests(
    name: str, planted: str, tmp_path: Path
) -> None:
    """The rule tests see it when one alert is dead, and when one cries all the time."""
    changed = rules()
    changed[NAMES.index(name)]["expr"] = planted
    assert run_tests(tmp_path, changed) == 1


def test_every_rule_asks_for_what_a_scrape_has() -> None:
    """No series, label or value in a rule or in its tests is misspelt."""
    text = ALERTS.read_text("utf-8") + (PROMETHEUS / TESTS).read_text("utf-8")
    assert list(unknown_parts(text)) == []


def test_a_misspelt_query_is_seen() -> None:
    """The check itself has power: a wrong series, label and value are each named."""
    query = 'conclave_answer_total + conclave_phase{phase="halt"} + conclave_pending_queries{a="b"}'
    assert list(unknown_parts(query)) == [
        "conclave_answer_total",
        'conclave_phase{phase="halt"}',
        "conclave_pending_queries{a}",
    ]


def test_every_rule_says_what_is_wrong_and_what_to_do() -> None:
    """Each has a severity, a summary that names the server, and a description."""
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert "{{ $labels.instance }}" in rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")


def test_every_rule_is_explained(repository: Path) -> None:
    """The page of metrics lists each alert, in their order."""
    page = (repository / "docs" / "metrics.md").read_text("utf-8")
    listed = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `Conclave")]
    assert listed == NAMES


@pytest.mark.parametrize("name", ["demo.yml", "release.yml"])
def test_the_configurations_of_prometheus_are_valid(name: str, tmp_path: Path) -> None:
    """`promtool check config` takes both, with the rules that they name and a key."""
    shutil.copy(ALERTS, tmp_path)
    key = tmp_path / "key"
    key.write_text("a key", encoding="utf-8")
    text = (PROMETHEUS / name).read_text("utf-8")
    changed = text.replace("/run/secrets/conclave_read_key", str(key))
    (tmp_path / name).write_text(changed, encoding="utf-8")
    checked = promtool("check", "config", tmp_path / name)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(NAMES)} rules found" in checked.stdout
