"""What the OpenAPI document says of one operation, and the pieces that it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from app.errors import (
    BudgetExhaustedError,
    IdempotencyConflictError,
    InvalidFeaturesError,
    LedgerUnavailableError,
    MalformedBodyError,
    SwitchingError,
    TooLargeError,
    UnsupportedMediaTypeError,
)
from app.http.openapi.components import COMPONENTS
from app.http.problems import InvalidParameterError
from app.http.query import query_body
from app.http.wire.bodies import JSON

if TYPE_CHECKING:
    from app.http.openapi.schemas import JsonSchema


@dataclass(frozen=True, slots=True)
class Operation:
    """What the document says of one route beside its path, method and role."""

    summary: str
    schema: str
    media_type: str = JSON
    refusals: tuple[Exception, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    other_forms: dict[str, Any] = field(default_factory=dict)


def request_body(schema: str, media_type: str) -> dict[str, Any]:
    """Return the member of an operation that takes a body of this type."""
    content = {media_type: content_of(schema)}
    return {"requestBody": {"required": True, "content": content}}


def content_of(schema: str) -> dict[str, Any]:
    """Return a media type's entry: the component of that name, with its examples."""
    examples = COMPONENTS[schema].get("examples", [])
    return {
        "schema": {"$ref": f"#/components/schemas/{schema}"},
        "examples": {
            f"example{number}": {"value": value} for number, value in enumerate(examples, 1)
        },
    }


def parameter(name: str, place: str, schema: JsonSchema, description: str) -> dict[str, Any]:
    """Return one parameter of an operation."""
    return {"name": name, "in": place, "schema": schema, "description": description}


IDEMPOTENCY_KEY: Final = parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": 255},
    "1 to 255 visible ASCII characters; the same key again gets the same answer again",
)
BODY_REFUSALS: Final = (
    MalformedBodyError(query_body.SHAPE),
    InvalidParameterError(query_body.KEY_SHAPE),
    TooLargeError("the body is longer than 1048576 bytes"),
    UnsupportedMediaTypeError("send the body with `Content-Type: application/json`"),
)
ANSWER_REFUSALS: Final = (
    InvalidFeaturesError(feature="age", problem="a number is needed"),
    IdempotencyConflictError("this Idempotency-Key was used with another feature vector"),
    BudgetExhaustedError("the release has halted"),
    LedgerUnavailableError("the ledger did not take the commit; nothing was released"),
    SwitchingError("the published classifier is being drawn"),
)
