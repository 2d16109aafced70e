"""Declaration of request and reply bodies: a strict pydantic model for each media type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from pydantic import BaseModel, Field, RootModel

if TYPE_CHECKING:
    from collections.abc import Mapping

REFERENCE: Final = "#/components/schemas/{model}"
Content = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]


class Body(BaseModel, strict=True, frozen=True, extra="forbid"):
    """The base model of request and reply bodies; a text is never read as a number."""

    @classmethod
    def read(cls, body: bytes) -> Self | None:
        """Return the model read from a JSON body; None if the body does not match it."""
        try:
            return cls.model_validate(msgspec.json.decode(body))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None


class Text(RootModel[str]):
    """A body that is plain text or bytes, not JSON."""


class Problem(Body):
    """A refusal as defined by RFC 9457; docs/errors.md lists every type."""

    type: str = Field(pattern="^urn:conclave:problem:[a-z-]+$")
    title: str
    status: int
    detail: str = Field(description="what is wrong and what to do")
    feature: str | None = Field(None, description="the feature at fault, where one is")


class V2Error(Body):
    """A refusal of the Open Inference Protocol."""

    error: str = Field(description="what is wrong and what to do")


def like(*examples: Any) -> dict[str, Any]:  # noqa: ANN401 -- any JSON
    """Return the part of a model's JSON schema that shows the given examples of a body."""
    return {"examples": list(examples)}


def forms(models: Mapping[str, type[BaseModel]]) -> dict[str, Content]:
    """Return the OpenAPI content of a body: a reference to a model for each media type."""
    return {
        media_type: {"schema": {"$ref": REFERENCE.format(model=model.__name__)}}
        for media_type, model in models.items()
    }


def takes(models: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    """Return the OpenAPI description of a request body that the route parses itself."""
    return {"requestBody": {"required": True, "content": forms(models)}}


def gives(models: Mapping[str, type[BaseModel]]) -> Responses:
    """Return the OpenAPI description of a success reply that the route builds itself."""
    return {200: {"content": forms(models)}}
