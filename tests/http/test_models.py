"""The models of bodies: strict, and silent about what does not fit them."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from pydantic import RootModel, ValidationError

from app.answering.answers import Bin, ScoredAnswer
from app.http.openapi import protocol_models, query_models
from app.http.openapi.openapi_document import MODELS, build_document
from app.http.openapi.protocol_models import Invocation
from app.http.openapi.read_models import LedgerHead, Rate
from app.http.protocols.v2 import InferenceReply, OutputTensor
from app.http.protocols.v2_body import InferenceBody
from app.http.protocols.v2_tensors import InputTensor
from app.http.query.query_body import QueryBody, QueryLine
from app.http.routes import ROUTES
from app.http.version import installed_version
from tests.http.doubles import JSON, Http

if TYPE_CHECKING:
    from pydantic import BaseModel

MARKER = "h-marker-7"
DECLARED = {*MODELS, *(route.response_model for route in ROUTES)} - {None}


READ_AND_WRITTEN = {
    query_models.Query: QueryBody,
    query_models.QueryLine: QueryLine,
    query_models.Answer: ScoredAnswer,
    query_models.Bin: Bin,
    protocol_models.V2Inference: InferenceBody,
    protocol_models.V2Input: InputTensor,
    protocol_models.V2Outputs: InferenceReply,
    protocol_models.V2OutputTensor: OutputTensor,
}


def members(model: type[BaseModel]) -> set[Any]:
    """Return a model, and the models of its members, however deep."""
    found = {model}
    for field in model.model_fields.values():
        for part in parts(field.annotation):
            if part not in found and hasattr(part, "model_fields"):
                found |= members(part)
    return found


def parts(annotation: Any) -> set[Any]:
    """Return what an annotation is made of."""
    below = [parts(each) for each in getattr(annotation, "__args__", ())]
    return {annotation}.union(*below) if annotation.__hash__ is not None else set().union(*below)


@pytest.mark.parametrize("model", sorted(DECLARED, key=str), ids=lambda model: model.__name__)
def test_every_model_is_strict(model: type[BaseModel]) -> None:
    """No text or boolean is taken for a number, in a part of a body neither."""
    parsed = [each for each in members(model) if not issubclass(each, RootModel)]
    assert all(each.model_config.get("strict") for each in parsed)
    assert all(each.model_config.get("frozen") for each in parsed)


@pytest.mark.parametrize("model", READ_AND_WRITTEN, ids=lambda model: model.__name__)
def test_a_busy_route_has_the_members_that_are_documented(model: type[BaseModel]) -> None:
    """What msgspec reads and writes has the names of the model, no more and no fewer."""
    assert sorted(model.model_fields) == sorted(READ_AND_WRITTEN[model].__struct_fields__)


@pytest.mark.parametrize("sequence", [True, "1", 1.0, None])
def test_what_is_no_whole_number_is_refused(sequence: object) -> None:
    """A boolean, a text and a float are none, though Python or a lax model takes them for one."""
    with pytest.raises(ValidationError):
        LedgerHead.model_validate({"sequence": sequence, "hash": "ab"})


def test_a_number_stays_what_it_is() -> None:
    """A whole number is not written as a float, which would change the bytes of a reply."""
    rate = Rate.model_validate({"mean": 0, "lower": 0.0, "upper": 1, "confidence": 0.95})
    assert repr(rate.model_dump()) == "{'mean': 0, 'lower': 0.0, 'upper': 1, 'confidence': 0.95}"


def test_values_of_rows_are_left_to_the_schema() -> None:
    """A value of any kind comes through a row, and its feature is named where it does not fit."""
    rows = [[1, True, {"deep": []}], {"age": [None]}]
    assert Invocation.model_validate({"instances": rows}).instances == rows


def test_a_reply_that_does_not_fit_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets the fixed text of an internal error, and the log its class alone."""

    async def outlook() -> dict[str, object]:
        return {"time": MARKER, MARKER: MARKER}

    with Http() as http, structlog.testing.capture_logs() as lines:
        monkeypatch.setattr(http.service, "outlook", outlook)
        reply = http.get("/budget/outlook")
    assert reply.status_code == 500
    assert reply.json()["type"] == "urn:conclave:problem:internal-error"
    (line,) = lines
    assert line["error"] == "ResponseValidationError"
    assert MARKER not in reply.text + repr(lines)


@pytest.mark.parametrize("path", ["/statistics", "/invocations"])
def test_a_body_that_does_not_fit_is_not_quoted(path: str) -> None:
    """What is said of it is fixed, whatever it has and wherever."""
    with Http() as http, structlog.testing.capture_logs() as lines:
        http.service.table = b"{}"
        for body in ({MARKER: 1}, {"hypotheses": MARKER, "instances": MARKER}, [MARKER], MARKER):
            content = json.dumps(body).encode()
            reply = http.request("POST", path, content=content, headers=JSON)
            assert reply.json()["type"] == "urn:conclave:problem:malformed-body"
            assert MARKER not in reply.text
    assert len(lines) == 4
    assert MARKER not in repr(lines)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_no_handler_runs_in_a_thread(route: Any) -> None:
    """A plain function would run beside the one writer; FastAPI gives it a thread."""
    assert inspect.iscoroutinefunction(route.endpoint)


@pytest.mark.parametrize("with_keys", [True, False])
def test_the_framework_has_no_refusal_of_its_own(with_keys: bool) -> None:  # noqa: FBT001 -- two cases
    """Nothing in the document is of the form that FastAPI refuses bodies and parameters in."""
    document = build_document(with_keys=with_keys)
    assert "ValidationError" not in json.dumps(document)
    assert document["info"]["version"] == installed_version()
