"""Requests made from the OpenAPI document, sent to a real server, and every reply held to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships none
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# It never ends, and is looked at by tests of its own.
ENDLESS = {"/budget/events"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
JSON = "application/json"
NDJSON = "application/x-ndjson"
SECONDS_MAX = 60
# Of those that ask queries, more cases: their bodies are where the decisions are.
ASKING_WEIGHT = 6


@schemathesis.serializer(NDJSON)
def as_lines(context: object, value: Any) -> bytes | None:
    """Send a value as one line."""
    del context
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


@schemathesis.serializer("text/csv")
def as_table(context: object, value: Any) -> bytes | None:
    """Send a text as it is, and anything else as what it looks like."""
    del context
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@dataclass
class Fuzzed:
    """What a run has come to.

    Attributes:
        statuses: how often each reply came, by operation and status.

    """

    statuses: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """All cases."""
        return sum(self.statuses.values())

    def note(self, operation: str, status: int) -> None:
        """Count one case."""
        self.statuses[operation, status] = self.statuses.get((operation, status), 0) + 1

    def of_status(self, status: int) -> int:
        """Return how many replies had a status."""
        return sum(count for (_, each), count in self.statuses.items() if each == status)


def fuzz(
    address: str,
    document: dict[str, Any],
    *,
    query: dict[str, Any],
    cases: int,
    number: int,
    headers: Mapping[str, str],
) -> Fuzzed:
    """Send cases of every operation, good ones and bad ones; every reply must be documented.

    Args:
        address: of the server.
        document: its OpenAPI document.
        query: a body that fits the release, asked first; no case that is drawn is sure to fit.
        cases: at least so many, in rounds, each of other cases.
        number: of the seed.  The cases follow from it and from the constants of the modules
            that are imported, among which Hypothesis looks too.
        headers: sent with each.

    Raises:
        FailureGroup: a reply that the document does not have, or an error of the server.

    """
    fuzzed = Fuzzed()
    operations = list(operations_of(document))
    ask_one(fuzzed, address, query, headers, document)
    weights = sum(weight for _, weight in operations)
    before = -1
    while before < fuzzed.count < cases:
        before = fuzzed.count
        for operation, weight in operations:
            share = max(1, (cases - before) * weight // (2 * weights) + 1)
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                number += 1
                run_one(fuzzed, address, operation, mode, (share, number), headers, document)
    return fuzzed


def operations_of(document: dict[str, Any]) -> Iterator[tuple[Any, int]]:
    """Yield each operation that ends, with its weight."""
    schema = schemathesis.openapi.from_dict(document)
    results: list[Any] = list(schema.get_all_operations())
    for result in results:
        operation = result.ok()
        if operation.path not in ENDLESS:
            yield operation, ASKING_WEIGHT if operation.method.upper() == "POST" else 1


def ask_one(
    fuzzed: Fuzzed,
    address: str,
    query: dict[str, Any],
    headers: Mapping[str, str],
    document: dict[str, Any],
) -> None:
    """Send one query whose body is known."""
    operation = schemathesis.openapi.from_dict(document)["/query"]["POST"]
    send_case(fuzzed, address, operation.Case(body=query, media_type=JSON), headers, document)


def run_one(
    fuzzed: Fuzzed,
    address: str,
    operation: Any,
    mode: GenerationMode,
    size: tuple[int, int],
    headers: Mapping[str, str],
    document: dict[str, Any],
) -> None:
    """Send cases of one operation in one mode."""
    share, number = size

    @seed(number)
    @settings(
        max_examples=share,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        assume(asks_its_path(case))
        send_case(fuzzed, address, case, headers, document)

    try:
        send()
    except Unsatisfiable:
        return  # there is nothing to get wrong in it


def send_case(
    fuzzed: Fuzzed, address: str, case: Any, headers: Mapping[str, str], document: dict[str, Any]
) -> None:
    """Send a case, count it, and hold its reply to the document."""
    response = case.call(base_url=address, headers=dict(headers), timeout=SECONDS_MAX)
    fuzzed.note(case.operation.label, response.status_code)
    case.validate_response(response, checks=CHECKS)
    check_lines(response, document)


def asks_its_path(case: Any) -> bool:
    """Tell whether a case asks the path that it is of: ``?`` and ``#`` in a name end it."""
    names = (case.path_parameters or {}).values()
    return not any(mark in str(name) for name in names for mark in "?#")


def check_lines(response: Any, document: dict[str, Any]) -> None:
    """Hold each line of a stream's reply to the document: an Answer, or a Problem."""
    if NDJSON not in response.headers.get("content-type", [""])[0]:
        return
    either = [{"$ref": f"#/components/schemas/{name}"} for name in ("Answer", "Problem")]
    validator = Draft202012Validator({"oneOf": either, "components": document["components"]})
    for line in response.content.splitlines():
        validator.validate(json.loads(line))
