"""The OpenAPI 3.1 document: FastAPI's, plus the refusals, roles and headers of all routes."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from fastapi.encoders import jsonable_encoder
from fastapi.openapi.models import HTTPBase
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema

from app.answering.service import Budget
from app.http.openapi import protocol_models as protocols
from app.http.openapi import query_models as queries
from app.http.openapi.body_declarations import REFERENCE, Problem, V2Error
from app.http.openapi.read_models import Classifier, ClassifierModel, Metrics
from app.http.openapi.refusal_replies import HEADERS, RATE_LIMITS, all_refused
from app.http.routes import ROUTES
from app.http.version import installed_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.http.route_handling import EdgeRoute

# Of bodies that a route reads or writes itself; FastAPI knows of none of them.
MODELS: Final = (
    Problem,
    V2Error,
    queries.Query,
    queries.QueryLine,
    queries.Answer,
    queries.StatisticsQuestion,
    queries.StatisticsTable,
    protocols.V2Inference,
    protocols.V2InferenceWithBinary,
    protocols.V2Outputs,
    protocols.Invocation,
    protocols.InvocationCsv,
    Budget,
    Classifier,
    ClassifierModel,
    Metrics,
)
SECURITY_SCHEMES: Final = {
    "bearer": HTTPBase(scheme="bearer"),
    "basic": HTTPBase(scheme="basic", description="the key is the password"),
}


class InOrder(GenerateJsonSchema):
    """A JSON schema generator that keeps the members of a body in their declared order."""

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        """Return a schema with its members in their original order."""
        del parent_key
        return value


@cache
def build_document(*, with_keys: bool) -> dict[str, Any]:
    """Return the OpenAPI document; ``with_keys`` says that callers need an API key."""
    document = get_openapi(
        title="Conclave",
        version=installed_version(),
        summary="Private answers to classification queries",
        routes=[_of_one_method(route) for route in ROUTES],
    )
    schemas = _schemas()
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        _complete(operation, route, with_keys=with_keys)
        for content in _contents(operation):
            name = content["schema"]["$ref"].rpartition("/")[2]
            examples = enumerate(schemas[name].get("examples", ()), 1)
            content.setdefault(
                "examples", {f"example{number}": {"value": value} for number, value in examples}
            )
    schemes = {"securitySchemes": SECURITY_SCHEMES} if with_keys else {}
    parts = jsonable_encoder({"headers": HEADERS} | schemes, exclude_none=True)
    return document | {"components": {"schemas": schemas} | parts}


def _of_one_method(route: EdgeRoute) -> EdgeRoute:
    """Return a route without the HEAD that goes with every GET."""
    shown = copy(route)
    shown.methods = {route.method}
    return shown


def _schemas() -> dict[str, Any]:
    """Return the schema of every model, by its name.

    FastAPI's own lack the nulls of examples, and have its form of a refusal.
    """
    replies = [route.response_model for route in ROUTES if route.response_model is not None]
    models = dict.fromkeys([*MODELS, *replies])
    _, generated = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template=REFERENCE,
        schema_generator=InOrder,
    )
    schemas: dict[str, Any] = generated["$defs"]
    return schemas


def _complete(operation: dict[str, Any], route: EdgeRoute, *, with_keys: bool) -> None:
    """Add the role, the refusals and headers of all routes; take out FastAPI's refusal."""
    responses = operation["responses"]
    if "HTTPValidationError" in str(responses.get("422")):
        del responses["422"]
    operation["responses"] = all_refused(responses, route, with_keys=with_keys)
    if route.role is None:
        return
    operation["description"] = f"Role: {route.role}."
    operation["security"] = [{name: []} for name in SECURITY_SCHEMES] if with_keys else []
    if with_keys:
        operation["responses"]["200"]["headers"] = RATE_LIMITS


def _contents(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the content of every body of an operation, by media type."""
    for body in (operation.get("requestBody", {}), *operation["responses"].values()):
        yield from body.get("content", {}).values()
