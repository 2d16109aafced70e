"""How a route declares its bodies: a strict model for each media type."""

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
    """A body of a request or a reply, or a part of one; text is never read as a number."""

    @classmethod
    def read(cls, body: bytes) -> Self | None:
        """Return the model of a JSON body; None where it is not JSON, or of another form."""
        try:
            return cls.model_validate(msgspec.json.decode(body))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None


class Text(RootModel[str]):
    """A body that is not JSON."""


class Problem(Body):
    """RFC 9457; docs/errors.md lists every type with what to do about it."""

    type: str = Field(pattern="^urn:conclave:problem:[a-z-]+$")
    title: str
    status: int
    detail: str = Field(description="what is wrong and what to do")
    feature: str | None = Field(None, description="the feature at fault, where one is")


class V2Error(Body):
    """A refusal of the Open Inference Protocol."""

    error: str = Field(description="what is wrong and what to do")


def like(*examples: Any) -> dict[str, Any]:  # noqa: ANN401 -- any JSON
    """Return the examples of a model, in the form of an addition to its schema."""
    return {"examples": list(examples)}


def forms(models: Mapping[str, type[BaseModel]]) -> dict[str, Content]:
    """Return the content of a body: a reference to a model for each media type."""
    return {
        media_type: {"schema": {"$ref": REFERENCE.format(model=model.__name__)}}
        for media_type, model in models.items()
    }


def takes(models: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    """Return the documented body of a request that its route reads itself."""
    return {"requestBody": {"required": True, "content": forms(models)}}


def gives(models: Mapping[str, type[BaseModel]]) -> Responses:
    """Return the documented success reply of a route that makes it itself."""
    return {200: {"content": forms(models)}}
