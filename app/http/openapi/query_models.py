"""Models of query and statistics bodies for the OpenAPI document; other code parses queries.

An idempotency key is a text that a client sends with a query: a repeated query with the same text
gets the same answer. A question about statistics names hypotheses (rules with two outcomes). The
mean outcome of a hypothesis over the private rows counts the first outcome as -1, the second as 1;
the server computes it from a published table of noisy counts.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Header
from pydantic import Field, RootModel, SkipValidation

from app.http.openapi.body_declarations import Body, like

Value = Annotated[
    int | float | str | bool | None,
    Field(
        description="a number; of a category its name, or the number or boolean that it names; "
        "true or false; a date such as 2026-12-31; null where missing"
    ),
]


class Query(
    Body,
    json_schema_extra=like(
        {"features": [39, "Private"]},
        {"features": {"age": 39, "workclass": "Private"}},
        {"features": [39, "Private"], "precision": 20},
    ),
):
    """One feature vector; GET /schema lists the features."""

    features: list[Value] | dict[str, Value] = Field(
        description="in schema order, or by feature name"
    )
    precision: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        None,
        description="bins of the score; only where the release answers scores, and without it "
        "the precision of GET /schema",
    )


class QueryLine(
    Query,
    json_schema_extra=like({"features": [39, "Private"], "idempotency_key": "row-17"}),
):
    """One line of a query stream, with an optional idempotency key."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        None, description="stands for the Idempotency-Key header, line by line"
    )


class Bin(Body):
    """An interval of scores from lower up to upper, which is excluded unless it is 1."""

    lower: float
    upper: float


class Answer(
    Body,
    json_schema_extra=like(
        {
            "query_id": 17,
            "label": ">50K",
            "stable": True,
            "phase": "ensemble",
            "replayed": False,
        },
        {
            "query_id": 18,
            "label": ">50K",
            "stable": True,
            "phase": "ensemble",
            "replayed": False,
            "score": 0.65,
            "bin": {"lower": 0.6, "upper": 0.7},
            "precision": 10,
        },
    ),
):
    """An answer to a query; its last three members only occur in a release with scores."""

    query_id: int | None = Field(
        description="number of the fresh answer, from 1; null from the classifier"
    )
    label: str | None = Field(
        description="one of the schema's classes; null where unstable and abstaining"
    )
    stable: bool
    phase: Literal["ensemble", "classifier", "halted"]
    replayed: bool = Field(description="a recorded answer given again")
    score: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="mid-point of the bin; null where unstable, and from the classifier"
    )
    bin: Bin | None = Field(None, description="null as the score is")
    precision: int | None = Field(
        None, description="bins that were asked for; null from the classifier"
    )


class StatisticsQuestion(
    Body,
    json_schema_extra=like(
        {
            "hypotheses": [
                {
                    "tree": {
                        "feature": 0,
                        "at_least": 40.0,
                        "true": {"label": ">50K"},
                        "false": {"label": "<=50K"},
                    }
                }
            ]
        }
    ),
):
    """Hypotheses whose mean outcomes are asked for; each must fit the schema."""

    hypotheses: list[Annotated[dict[str, Any], SkipValidation]] = Field(
        description="classifier documents with a tree, or trees alone, each with `outcomes`, two "
        "of the classes, where there are more: docs/statistics.md has their members; 1000 at most"
    )


class StatisticsAnswer(
    Body,
    json_schema_extra=like({"values": [-0.42], "fractions": [0.29], "alpha": 0.08, "beta": 0.05}),
):
    """Mean outcomes of the posted hypotheses, in their order."""

    values: list[Annotated[float, Field(ge=-1, le=1)]] = Field(
        description="mean of each over the rows, -1 for the first outcome, +1 for the second"
    )
    fractions: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        description="share of the rows that each gives the second outcome"
    )
    alpha: float = Field(description="largest error of a value")
    beta: float = Field(description="probability at which alpha may fail")


class StatisticsTable(
    RootModel[dict[str, Any]],
    json_schema_extra=like({"format": "conclave-statistics", "version": 1}),
):
    """The released statistics table; docs/statistics.md has its members."""


async def documented_key(
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="1 to 255 visible ASCII characters; the same key again gets the same "
            "answer again",
            json_schema_extra={"minLength": 1, "maxLength": 255},
        ),
    ] = None,
) -> None:
    """Declare the header ``Idempotency-Key``, which the routes read, in the OpenAPI document."""
    del key
