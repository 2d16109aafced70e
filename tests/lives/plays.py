"""What is done in a life, step by step: each play drives one release from opening to end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.lives.exchange import NDJSON, Request
from tests.lives.people import questions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.lives.catalogue import Life
    from tests.lives.stage import Serving, Stage

QUESTION_COUNT = 260
FIRST = 10
AFTERWARDS = 4
ONNX: Final = {"accept": "application/onnx"}
READ: Final = (
    "/budget",
    "/budget/outlook",
    "/budget/history",
    "/parameters",
    "/schema",
    "/ledger?limit=1000",
    "/ledger?after=2&limit=3",
    "/ledger/head",
    "/keys/usage",
    "/classifier",
    "/statistics/table",
    "/v2",
    "/v2/models/members",
    "/v2/models/members/ready",
    "/ping",
    "/healthz",
    "/readyz",
    "/metrics",
)
POINTS: Final = "group,age,income\ncommon,20,30\ncommon,80,90\nrare,20,70\nrare,60,20\n,45.5,\n"
LEAF_YES: Final = {"label": "yes"}


def whole(life: Life, stage: Stage) -> None:
    """Open, answer in every way, restart, answer to the end, restart, and export."""
    asked = questions(len(life.name), QUESTION_COUNT)
    stage.configured("plan", "--populations", "0")
    with stage.serving("first") as served:
        served.settle(statistics=False)  # without answers it begins with the switch
        read_all(served)
        ask_every_way(served, asked)
    stage.configured("verify")
    with stage.serving("second") as served:
        repeat(served, asked)
        answer_to_the_end(life, served, asked)
        read_all(served)
        read_published(served)
    publish(stage)
    with stage.serving("third") as served:
        repeat(served, asked)
        for vector in asked[-AFTERWARDS:]:
            served.post("/query", {"features": vector})
        served.get("/budget")
    stage.keep_ledger("at the end")


def read_all(served: Serving) -> None:
    """Read everything that can be read, and the first event of both streams."""
    for path in READ:
        served.get(path)
    served.get("/classifier", **ONNX)
    for path in ("/budget/events", "/budget/events?outlook=true"):
        served.ask(Request("GET", path, first_only=True))


def read_published(served: Serving) -> None:
    """Ask the statistics, where there are any."""
    for cut in (25, 50, 75):
        branches = {"true": LEAF_YES, "false": {"label": "no"}}
        tree = {"tree": {"feature": 0, "at_least": cut, **branches}}
        served.post("/statistics", {"hypotheses": [tree, {"tree": LEAF_YES}]})


def ask_every_way(served: Serving, asked: Sequence[list[Any]]) -> None:
    """Ask by list, by name, by key, in streams and by the other protocols."""
    names = ("age", "income", "group")
    served.post("/query", {"features": asked[0]})
    served.post("/query", {"features": dict(zip(names, asked[1], strict=True))})
    served.post("/query", {"features": asked[2]}, **{"Idempotency-Key": "one"})
    served.post("/query", {"features": asked[2]}, **{"Idempotency-Key": "one"})
    served.post("/query", {"features": asked[3]}, **{"Idempotency-Key": "one"})
    served.post("/query", {"features": asked[0]}, **{"Idempotency-Key": "two"})
    served.post("/query", {"features": asked[3], "precision": 3})
    lines = [json.dumps({"features": vector}).encode() + b"\n" for vector in asked]
    served.ask(Request("POST", "/query/stream", NDJSON, b"".join(lines[3:6])), "a window")
    served.ask(Request("POST", "/query/stream", NDJSON, (*lines[5:8],)), "line by line")
    infer(served, asked[7:9])
    columns = {"columns": names, "data": asked[8:FIRST]}
    served.post("/invocations", {"dataframe_split": columns})
    table = "age,income,group\n33.25,44.5,common\n"
    served.ask(Request("POST", "/invocations", {"content-type": "text/csv"}, table.encode()))


def infer(served: Serving, asked: Sequence[list[Any]]) -> None:
    """Ask vectors by the V2 protocol."""
    kinds = (("age", "FP64"), ("income", "FP64"), ("group", "BYTES"))
    inputs = [
        {
            "name": name,
            "shape": [len(asked), 1],
            "datatype": kind,
            "data": [row[place] for row in asked],
        }
        for place, (name, kind) in enumerate(kinds)
    ]
    served.post("/v2/models/members/infer", {"id": "a", "inputs": inputs})


def repeat(served: Serving, asked: Sequence[list[Any]]) -> None:
    """Ask again what was asked before the restart."""
    for vector in asked[:3]:
        served.post("/query", {"features": vector})
    served.post("/query", {"features": asked[2]}, **{"Idempotency-Key": "one"})
    lines = [json.dumps({"features": vector}).encode() + b"\n" for vector in asked[3:8]]
    served.ask(Request("POST", "/query/stream", NDJSON, b"".join(lines)), "again")


def answer_to_the_end(life: Life, served: Serving, asked: Sequence[list[Any]]) -> None:
    """Ask until the ensemble has ended, then a few more."""
    rest = iter(asked[FIRST:])
    while served.budget()["phase"] == "ensemble" and (vector := next(rest, None)) is not None:
        served.post("/query", {"features": vector})
    served.settle(statistics=_has_statistics(life))
    for vector in asked[-AFTERWARDS:]:
        served.post("/query", {"features": vector})
    infer(served, asked[-AFTERWARDS:])
    body = b"".join(json.dumps({"features": vector}).encode() + b"\n" for vector in asked[:12])
    served.ask(Request("POST", "/query/stream", NDJSON, body), "all again")


def publish(stage: Stage) -> None:
    """Verify the ledger, and export what is published."""
    stage.configured("verify")
    stage.configured("verify", "--expect-head", "ab" * 32)
    for form in ("json", "onnx"):
        stage.configured("export", "--format", form)


def learned(life: Life, stage: Stage) -> None:
    """Publish at once, with points or without, then serve to the end."""
    asked = questions(len(life.name), QUESTION_COUNT)
    points: list[str] = []
    if "quantiles" not in life.name:
        points = ["--public", str(write_points(stage.folder))]
    stage.configured("learn", *points)
    stage.configured("learn", *points)
    publish(stage)
    with stage.serving("after") as served:
        ask_every_way(served, asked)
        answer_to_the_end(life, served, asked)
        read_all(served)
    publish(stage)
    stage.keep_ledger("at the end")


def statistics_first(life: Life, stage: Stage) -> None:
    """Open the table before the first answer, and ask it by both doors."""
    asked = questions(len(life.name), QUESTION_COUNT)
    points = ("--public", str(write_points(stage.folder)))
    file = stage.folder / "hypotheses.json"
    file.write_text(json.dumps({"hypotheses": [{"tree": LEAF_YES}]}), encoding="utf-8")
    for options in (points, (), points):
        stage.configured("statistics", *options, str(file))
    stage.configured("statistics", str(stage.folder / "none.json"))
    with stage.serving("after") as served:
        read_all(served)
        read_published(served)
        ask_every_way(served, asked)
        answer_to_the_end(life, served, asked)
        read_all(served)
    publish(stage)
    stage.keep_ledger("at the end")


def write_points(folder: Path) -> Path:
    """Write a few public points."""
    path = folder / "public.csv"
    path.write_text(POINTS, encoding="utf-8")
    return path


def keys(life: Life, stage: Stage) -> None:
    """Serve three keys, of which one reaches its limits, over a restart."""
    asked = questions(len(life.name), QUESTION_COUNT)
    file = str(stage.folder / "keys.toml")
    stage.environ["CONCLAVE_SERVER__KEYS_FILE"] = file
    secrets = {
        name: _made_key(stage, file, *options)
        for name, options in {
            "web": ("web", "query", "--limit", "5", "--unstable-limit", "1"),
            "desk": ("desk", "admin"),
            "wall": ("wall", "read"),
        }.items()
    }
    bearers = {name: f"Bearer {secret}" for name, secret in secrets.items()}
    for moment, part in (("first", asked[:4]), ("second", asked[4:12])):
        with stage.serving(moment) as served:
            for bearer in bearers.values():
                for vector in part:
                    served.post("/query", {"features": vector}, authorization=bearer)
                for path in ("/budget", "/ledger", "/metrics", "/schema", "/"):
                    served.get(path, authorization=bearer)
            lines = b"".join(json.dumps({"features": each}).encode() + b"\n" for each in part)
            headers = {**NDJSON, "authorization": bearers["web"]}
            served.ask(Request("POST", "/query/stream", headers, lines))
            served.post("/query", {"features": asked[0]})
            served.post("/query", {"features": asked[0]}, authorization="Bearer nobody")
    stage.configured("keys usage")
    stage.configured("verify")
    stage.keep_ledger("at the end")


def _made_key(stage: Stage, file: str, name: str, role: str, *limits: str) -> str:
    given = ("--name", name, "--role", role, *limits, "--keys-file", file)
    return stage.command("keys", "add", *given).decode().strip().splitlines()[-1]


def played(life: Life, stage: Stage) -> None:
    """Live a life by its play."""
    from tests.lives import command_plays, ledger_plays, refusal_plays

    plays: dict[str, Callable[[Life, Stage], None]] = {
        "whole": whole,
        "learned": learned,
        "statistics_first": statistics_first,
        "keys": keys,
        **ledger_plays.PLAYS,
        **refusal_plays.PLAYS,
        **command_plays.PLAYS,
    }
    plays[life.play](life, stage)


def _has_statistics(life: Life) -> bool:
    shares = [each.get("privacy.shares", {}).get("statistics", 0) for each in life.changes]
    return any(shares)
