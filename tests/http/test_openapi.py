"""The OpenAPI document: valid, complete, and each example fits its own schema."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships none
from openapi_spec_validator import OpenAPIV31SpecValidator

from app.errors import IntegrityError, RequestError, UnavailableError
from app.http import application
from app.http.openapi.openapi_document import build_document
from app.http.problems import KINDS, TYPE_PREFIX
from app.http.routes import ROUTES
from tests.http.doubles import Http

if TYPE_CHECKING:
    from collections.abc import Iterator

WITH_KEYS = (False, True)
# Never in a reply of their own: bases, and what no route but the router says.
BASES = {"bad-request"}
OF_THE_ROUTER = {"not-found", "method-not-allowed"}


@cache
def document_of(*, with_keys: bool) -> dict[str, Any]:
    """Return a document, which is made when the first test reads it."""
    return build_document(with_keys=with_keys)


def contents(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every body of every request and reply, by where it is."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            place = f"{method} {path}"
            bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
            for name, body in bodies.items():
                for media_type, content in body.get("content", {}).items():
                    yield f"{place} {name} {media_type}", content


@pytest.mark.parametrize("with_keys", WITH_KEYS)
def test_the_document_is_valid(with_keys: bool) -> None:  # noqa: FBT001 -- a table
    """It is OpenAPI 3.1, by a validator that is not ours."""
    OpenAPIV31SpecValidator(document_of(with_keys=with_keys)).validate()


@pytest.mark.parametrize("with_keys", WITH_KEYS)
def test_every_body_has_examples_that_fit_its_schema(with_keys: bool) -> None:  # noqa: FBT001 -- a table
    """Every request and reply, of every status and media type, has one at least."""
    document = document_of(with_keys=with_keys)
    components = {"components": document["components"]}
    count = 0
    for place, content in contents(document):
        assert content["examples"], place
        validator = Draft202012Validator({**content["schema"], **components})
        for name, example in content["examples"].items():
            problems = [error.message for error in validator.iter_errors(example["value"])]
            assert not problems, f"{place} {name}: {problems}"
            count += 1
    assert count > 100


def test_the_document_waits_for_its_first_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """No start makes it; the first request does, and gets the whole of it."""
    told = []

    def noted(*, with_keys: bool) -> dict[str, Any]:
        told.append(with_keys)
        return build_document(with_keys=with_keys)

    monkeypatch.setattr(application, "build_document", noted)
    with Http() as http:
        assert not told
        assert http.get("/openapi.json").json() == document_of(with_keys=False)
    assert told == [False]


def test_an_example_that_does_not_fit_is_found() -> None:
    """The check above can fail: an answer without its label does not fit."""
    components = {"components": document_of(with_keys=False)["components"]}
    validator = Draft202012Validator({"$ref": "#/components/schemas/Answer", **components})
    assert not validator.is_valid({"query_id": 1})


@pytest.mark.parametrize("with_keys", WITH_KEYS)
def test_every_route_is_an_operation(with_keys: bool) -> None:  # noqa: FBT001 -- a table
    """No route is left out, and every operation has a name of its own."""
    paths = document_of(with_keys=with_keys)["paths"]
    assert {(entry.method.lower(), entry.path) for entry in ROUTES} == {
        (method, path) for path, methods in paths.items() for method in methods
    }
    names = [each["operationId"] for methods in paths.values() for each in methods.values()]
    assert len(set(names)) == len(names)


def test_every_problem_is_a_reply_of_some_operation() -> None:
    """What the table of problems has, the document has, but for what only the router says."""
    told = {
        str(example["value"]["type"]).removeprefix(TYPE_PREFIX)
        for with_keys in WITH_KEYS
        for _, content in contents(document_of(with_keys=with_keys))
        for example in content["examples"].values()
        if isinstance(example["value"], dict) and "title" in example["value"]
    }
    families = (RequestError, UnavailableError, IntegrityError)
    slugs = {kind.slug for kind in KINDS if issubclass(kind, families)}
    assert told - {"internal-error"} == slugs - BASES - OF_THE_ROUTER


@pytest.mark.parametrize(
    ("path", "status"),
    [("/query", "429"), ("/invocations", "429"), ("/v2/models/{name}/infer", "429")],
)
def test_limits_are_documented_where_there_are_keys(path: str, status: str) -> None:
    """Without keys there is no 429 and there are no RateLimit headers."""
    with_keys, without = (
        document_of(with_keys=each)["paths"][path]["post"]["responses"] for each in (True, False)
    )
    assert status in with_keys
    assert status not in without
    assert set(with_keys["200"]["headers"]) == {"RateLimit-Policy", "RateLimit"}
    assert "headers" not in without["200"]
