"""``GET /metrics``: what is public, under the documented names, and nothing of the process."""

from __future__ import annotations

import re
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.answering.hourly_counts import SECONDS_BOUNDS, Workload
from app.answering.service_slot import STATES
from app.http.access.keys import Role
from app.http.monitoring.metrics import METRICS, PHASES, RELEASE_METRICS, SLUGS
from app.http.monitoring.monitoring_options import Watching
from app.ledger.api_key_counts import KeyCount
from tests.http.doubles import HEAD, KEY_RING, KEYS, Http

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LABELS = {
    "generation",
    "hash",
    "key",
    "kind",
    "mechanism",
    "method",
    "name",
    "phase",
    "problem",
    "python",
    "route",
    "state",
    "status",
    "version",
}
Found: TypeAlias = "Mapping[str, Mapping[tuple[str, ...], float]]"


def samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the value of every sample, by name and label values, as Prometheus reads them."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = found.setdefault(sample.name, {})
            assert tuple(sample.labels.values()) not in values
            values[tuple(sample.labels.values())] = sample.value
    return found


# What follows from the rest, or is fixed when the release opens, has no metric.
NO_METRIC = (
    "unit",
    "left",
    "accounting",
    "with_scores",
    "follows",
    "hopeless",
    "generations",
    "closed",
)


def shown_budget(http: Http) -> dict[str, Any]:
    """Return ``GET /budget`` without the members that have no metric."""
    budget: dict[str, Any] = http.get("/budget").json()
    return {name: value for name, value in budget.items() if name not in NO_METRIC}


def budget_of(found: Found) -> dict[str, Any]:
    """Return the body of ``GET /budget``, put together again from the samples alone."""
    ((name,),) = found["conclave_release_info"]
    ((head,),) = found["conclave_ledger_head_info"]
    (phase,) = [key[0] for key, value in found["conclave_phase"].items() if value == 1]
    return {
        "release": {"name": name},
        "phase": phase,
        "student": bool(_one(found, "student")),
        "switching": bool(_one(found, "switching")),
        "epsilon": _one(found, "epsilon_promised"),
        "delta": _one(found, "delta_promised"),
        "composed": _composed(found),
        "charged": _shares(found, "charged"),
        "reserved": _shares(found, "reserved"),
        "queries": _counter(found, ("answers_total", "answers_limit"), ("answered", "limit")),
        "unstable": _counter(found, ("unstable_total", "unstable_cutoff"), ("count", "cutoff")),
        "ensemble": {"size": _one(found, "ensemble_size")},
        "quorum": _one(found, "generations_quorum"),
        "erased": _one(found, "erased_total"),
        "tick": _one(found, "generations_tick_seconds"),
        "ledger": {"sequence": _one(found, "ledger_sequence"), "head": head},
    }


def _one(found: Found, name: str) -> float | None:
    """Return the one value of a metric without labels, or None where it has no sample."""
    return found.get(f"conclave_{name}", {}).get(())


def _shares(found: Found, name: str) -> list[dict[str, object]]:
    deltas = found.get(f"conclave_delta_{name}", {})
    return [
        {"mechanism": key[0], "epsilon": value, "delta": deltas[key]}
        for key, value in found.get(f"conclave_epsilon_{name}", {}).items()
    ]


def _counter(
    found: Found, names: tuple[str, str], members: tuple[str, str]
) -> dict[str, float | None]:
    count, limit = _one(found, names[0]), _one(found, names[1])
    left = None if limit is None or count is None else max(0, limit - count)
    return {members[0]: count, members[1]: limit, "left": left}


def _composed(found: Found) -> dict[str, float | None] | None:
    members = ("epsilon", "delta", "releases")
    numbers = {member: _one(found, f"composed_{member}") for member in members}
    return None if set(numbers.values()) == {None} else numbers


def test_budget_can_be_put_together_from_the_metrics() -> None:
    """Every number of the budget is there, and none differs; what is unlimited has no sample."""
    with Http() as http:
        http.ask([20, None])
        http.ask([50, "Private"])
        reply = http.get("/metrics")
        budget = shown_budget(http)
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert reply.headers["cache-control"] == "no-store"
    found = samples(reply.text)
    assert budget_of(found) == budget
    assert budget["queries"] == {"answered": 2, "limit": None, "left": None}
    assert found["conclave_ledger_head_info"] == {(HEAD,): 1}
    assert found["conclave_ledger_head_file_sequence"] == {(): 1}
    assert [key[0] for key in found["conclave_phase"]] == list(PHASES)


def test_a_composed_budget_is_exposed_where_it_is_stated() -> None:
    """A release that is alone and states nothing has no sample, rather than zeros."""
    with Http() as http:
        assert "conclave_composed_epsilon" not in samples(http.get("/metrics").text)
        http.service.composed = {"epsilon": 2.0, "delta": 2e-6, "releases": 2}
        budget = shown_budget(http)
        assert budget_of(samples(http.get("/metrics").text)) == budget
    assert budget["composed"] == {"epsilon": 2.0, "delta": 2e-6, "releases": 2}


def test_a_head_file_that_is_not_kept_has_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence of 0 would look like a file that is never written."""
    with Http() as http:
        monkeypatch.setattr(http.service, "noted_sequence", lambda: None)
        assert "conclave_ledger_head_file_sequence" not in samples(http.get("/metrics").text)


def test_answers_of_keys_are_exposed_where_an_operator_wants_it() -> None:
    """By name, those without an answer too; by default no sample tells clients apart."""
    headers = {"Authorization": f"Bearer {KEYS[Role.READ]}"}
    for asked, expected in ((False, {}), (True, {("query",): 3, ("read",): 0, ("admin",): 0})):
        with Http(keys=KEY_RING, watching=Watching(key_metrics=asked)) as http:
            http.service.counts["query"] = KeyCount(3, 1)
            found = samples(http.get("/metrics", headers=headers).text)
        assert found.get("conclave_key_answers_total", {}) == expected


def test_exposes_what_is_listed_and_nothing_of_the_process() -> None:
    """No collector of the library gets in, and no label tells clients apart."""
    with Http() as http:
        http.ask([20, None])
        families = list(text_string_to_metric_families(http.get("/metrics").text))
    listed = {metric.name: metric for metric in METRICS}
    assert len(listed) == len(METRICS)
    exposed = {
        family.name + ("_total" if family.type == "counter" else ""): family for family in families
    }
    assert set(exposed) == set(listed)
    for name, family in exposed.items():
        metric = listed[name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        own = [tuple(label for label in each.labels if label != "le") for each in family.samples]
        assert set(own) <= {metric.labels}
    labels = {label for metric in METRICS for label in metric.labels}
    assert labels == LABELS


def test_names_follow_the_conventions() -> None:
    """One prefix, snake case, and ``_total`` for counters and for nothing else."""
    for metric in METRICS:
        assert re.fullmatch(r"conclave(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") is (metric.kind == "counter")
        assert metric.help[0].isupper()
        assert not metric.help.endswith(".")


def test_refusals_are_counted_by_slug() -> None:
    """Each refused request, and each refused line of a stream, counts once; probes do not."""
    with Http(queries_max=1) as http:
        http.ask([20, None])
        http.ask([21, None])
        http.ask(["old", None])
        http.stream({"features": [22, None]}, b"{", {"features": [20, None]})
        http.get("/readyz")
        refusals = samples(http.get("/metrics").text)["conclave_refusals_total"]
    assert set(refusals) == {(slug,) for slug in SLUGS}
    assert {key[0]: value for key, value in refusals.items() if value} == {
        "budget-exhausted": 2,
        "invalid-features": 1,
        "malformed-body": 1,
    }


def test_a_name_that_needs_escaping_comes_back_whole() -> None:
    """Whatever an operator calls a release, the text stays readable."""
    name = 'say "hello\\world"\nand {more}'
    with Http() as http:
        http.service.release_name = name
        assert budget_of(samples(http.get("/metrics").text))["release"] == {"name": name}


@pytest.mark.parametrize("state", ["opening", "stopped", "draining"])
def test_a_release_that_is_not_served_tells_of_its_server_only(state: str) -> None:
    """A scrape before the opening, or after a stop, has no number of a release, and no zeros."""
    with Http(is_open=state != "opening") as http:
        if state == "stopped":
            http.slot.stop()
        elif state == "draining":
            http.slot.drain()
        reply = http.get("/metrics")
    assert reply.status_code == 200
    found = samples(reply.text)
    assert found["conclave_server_state"] == {(each,): each == state for each in STATES}
    of_release = {metric.name for metric in RELEASE_METRICS} | {"conclave_pending_queries"}
    assert (found.keys() & of_release == set()) is (state != "draining")


def test_times_are_counted_by_route_and_status_and_are_coarse() -> None:
    """Each reply counts once where it belongs, and the sum says no more than the buckets."""
    with Http(queries_max=2) as http:
        for age in (20, 21, 22):
            http.ask([age, None])
        http.get("/ledger?limit=0")
        found = samples(http.get("/metrics").text)
    counts = found["conclave_request_duration_seconds_count"]
    assert counts == {
        ("POST", "/query", "200"): 2,
        ("POST", "/query", "410"): 1,
        ("GET", "/ledger", "400"): 1,
    }
    buckets = found["conclave_request_duration_seconds_bucket"]
    bounds = {key[0] for key in buckets}
    assert bounds == {str(bound) for bound in SECONDS_BOUNDS} | {"+Inf"}
    for key, total in found["conclave_request_duration_seconds_sum"].items():
        of_bounds = [buckets[str(bound), *key] for bound in SECONDS_BOUNDS]
        apart = [count - before for before, count in pairwise([0, *of_bounds])]
        rest = counts[key] - of_bounds[-1]
        expected = sum(map(mul, SECONDS_BOUNDS, apart)) + rest * SECONDS_BOUNDS[-1]
        assert total == pytest.approx(expected)


def test_times_are_not_counted_where_an_operator_says_so() -> None:
    """Without ``server.time_metrics`` neither requests nor commits have a time."""
    with Http(watching=Watching(times=False)) as http:
        http.service.work.commit_seconds.add(0.01)
        http.ask([20, None])
        text = http.get("/metrics").text
    assert not re.search(r"^conclave_\w+_duration_seconds_", text, re.MULTILINE)
    assert "conclave_batch_queries_count 0.0" in text


def test_what_waits_and_what_was_decided_together_is_told() -> None:
    """The queue, its limit, and batches and commits in their buckets."""
    with Http() as http:
        http.service.work = Workload(waiting=3, waiting_max=7)
        http.service.work.batch_queries.add(5)
        http.service.work.commit_seconds.add(0.003)
        http.service.work.commit_seconds.add(99.0)
        found = samples(http.get("/metrics").text)
    assert found["conclave_pending_queries"] == {(): 3}
    assert found["conclave_pending_queries_limit"] == {(): 7}
    assert found["conclave_batch_queries_bucket"][("16.0",)] == 1
    assert found["conclave_batch_queries_bucket"][("4.0",)] == 0
    assert found["conclave_batch_queries_sum"] == {(): 16}
    commits = found["conclave_commit_duration_seconds_bucket"]
    assert (commits[("0.005",)], commits[("30.0",)], commits[("+Inf",)]) == (1, 1, 2)
    assert found["conclave_commit_duration_seconds_sum"] == {(): 30.005}


def test_open_streams_are_counted_while_they_last() -> None:
    """An event stream that a client holds is one stream, and none once it hung up."""

    async def held(http: Http) -> list[dict[tuple[str, ...], float]]:
        counts = []
        async with http.wire("GET", "/budget/events") as wire:
            await wire.receive()
            await wire.receive()
            counts.append(await _streams(http))
            wire.hang_up()
            await wire.task
        return [*counts, await _streams(http)]

    with Http() as http:
        during, after = http.runner.run(held(http))
    assert during == {("events",): 1, ("queries",): 0}
    assert after == {("events",): 0, ("queries",): 0}


async def _streams(http: Http) -> dict[tuple[str, ...], float]:
    async with http.wire("GET", "/metrics") as wire:
        await wire.receive()
        return samples((await wire.receive_body()).decode())["conclave_streams_open"]


def test_page_lists_every_metric(repository: Path) -> None:
    """The table has each name, type, labels and text, in the order of the exposition."""
    page = (repository / "docs" / "metrics.md").read_text("utf-8")
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in page.splitlines()
        if line.startswith("| `conclave_")
    ]
    assert rows == [
        (
            f"`{metric.name}`",
            metric.kind,
            ", ".join(f"`{label}`" for label in metric.labels),
            metric.help,
        )
        for metric in METRICS
    ]
