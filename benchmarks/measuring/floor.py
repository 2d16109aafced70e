"""The floor: the least that a typed JSON route costs on this server, loop and parser."""

from __future__ import annotations

from fastapi import FastAPI
from pydantic import BaseModel

FEATURE_COUNT = 14


class Body(BaseModel):
    """Fourteen numbers, as ``POST /query`` takes them."""

    features: list[float]


class Label(BaseModel):
    """What the floor returns."""

    label: str


application = FastAPI()


@application.post("/query")
async def query(body: Body) -> Label:
    """Read the body, and return one label."""
    del body
    return Label(label="a")
