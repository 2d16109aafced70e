"""The bodies of the reading routes: outlook, parameters, ledger, schema, classifier, probes.

The outlook describes past answers, and forecasts when the models stop answering. The history counts
requests by hour, as every server writes them down once a minute. Answers are counted by kind: new
ones, repeated ones, and those of the published classifier. Answers are also counted by the name of
the client's API key, or by a name made from its token; names whose key was removed from the keys
file keep their counts.

In a release with scores, a query takes up to two stability tests (noisy tests of whether enough
models agree). Where other releases count unstable answers, such a release counts failed tests.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, RootModel

from app.http.openapi.body_declarations import Body, Text, like

Number = int | float
Count = Annotated[int, Field(ge=0)]
HASH: Final = "9f2c" * 16
HEAD: Final = {"sequence": 40, "hash": HASH}


class Status(Body, json_schema_extra=like({"status": "ready"})):
    """The reply to a health probe."""

    status: Literal["alive", "ready"]


class Parameter(Body):
    """One public parameter of the release, with its value and meaning."""

    name: str
    value: str
    meaning: str = Field(description="in plain words")
    formula: str


class Parameters(
    Body,
    json_schema_extra=like(
        {
            "parameters": [
                {
                    "name": "cutoff (T)",
                    "value": "5 unstable answers",
                    "meaning": "When these are used up, new queries are refused.",
                    "formula": "unstable <= T",
                }
            ]
        }
    ),
):
    """Every public parameter of the release, in reading order."""

    parameters: list[Parameter]


class LedgerHead(Body, json_schema_extra=like(HEAD)):
    """The newest ledger entry: its number and hash."""

    sequence: int
    hash: str = Field(description="SHA-256 of the entry, hex")


class LedgerPage(Body, json_schema_extra=like({"entries": [], "head": HEAD})):
    """The public parts of ledger entries, oldest first, each with number and hash."""

    entries: list[dict[str, Any]]
    head: LedgerHead


class KeyUsage(Body):
    """The answer counts of one API key; a limit is null if the key has none."""

    name: str
    answers: Count = Field(description="fresh answers of the ensemble")
    unstable: Count = Field(description="the unstable ones; with scores, units of the cutoff")
    limit: Count | None
    unstable_limit: Count | None


class KeysUsage(
    Body,
    json_schema_extra=like(
        {
            "keys": [
                {
                    "name": "web",
                    "answers": 17,
                    "unstable": 1,
                    "limit": 1000,
                    "unstable_limit": None,
                }
            ]
        }
    ),
):
    """The answer counts of all API keys in the keys file, and of other names in this release."""

    keys: list[KeyUsage]


class NewestBackup(Body):
    """The newest ledger backup that `conclave ledger backup` made on this machine."""

    made_at: Count = Field(description="seconds since 1970")
    sequence: Count = Field(description="number of the newest entry in it")


class LedgerStorage(
    Body,
    json_schema_extra=like(
        {
            "backup": {"made_at": 1767225600, "sequence": 11},
            "bytes_free": 20_971_520_000,
            "noted_sequence": 12,
        }
    ),
):
    """Facts about the machine that keeps the ledger; null where unknown."""

    backup: NewestBackup | None = Field(description="null where none is known here")
    bytes_free: Count | None = Field(description="of the disk, rounded down to mebibytes")
    noted_sequence: Count | None = Field(
        description="newest entry that the head file notes; null where none is kept"
    )


class Feature(Body):
    """One feature: a number or date within bounds, one of some categories, or a boolean."""

    name: str
    kind: Literal["numeric", "categorical", "boolean", "date"]
    bounds: list[Number] | list[str] | None = Field(None, description="of a date, two dates")
    categories: list[str] | None = None


class Schema(
    Body,
    json_schema_extra=like(
        {
            "release": "adult-income",
            "features": [
                {"name": "age", "kind": "numeric", "bounds": [17.0, 90.0]},
                {
                    "name": "workclass",
                    "kind": "categorical",
                    "categories": ["Private", "State-gov"],
                },
            ],
            "label": "income",
            "classes": ["<=50K", ">50K"],
            "missing": ["?"],
        }
    ),
):
    """The public schema that queries follow."""

    release: str
    features: list[Feature]
    label: str
    classes: list[str]
    missing: list[str] = Field(description="tokens that stand for a missing value")
    precision: int | None = Field(
        None,
        description="bins of a score where a query does not say; absent where labels are answered",
    )


class Classifier(
    RootModel[dict[str, Any]],
    json_schema_extra=like(
        {
            "format": "conclave-classifier",
            "version": 1,
            "release": "adult-income",
            "label": "income",
            "classes": ["<=50K", ">50K"],
            "missing": [],
            "features": [{"name": "age", "kind": "numeric", "bounds": [17.0, 90.0]}],
            "tree": {
                "feature": 0,
                "at_least": 35.0,
                "true": {"label": ">50K"},
                "false": {"label": "<=50K"},
            },
        }
    ),
):
    """The published classifier as JSON; docs/classifier-format.md has its members."""


class ClassifierModel(Text, json_schema_extra=like("the bytes of a file classifier.onnx")):
    """The published classifier as an ONNX model; docs/classifier-format.md says how to call it."""


class Metrics(
    Text,
    json_schema_extra=like(
        "# HELP conclave_ledger_sequence Number of the newest entry of the ledger\n"
        "# TYPE conclave_ledger_sequence gauge\n"
        "conclave_ledger_sequence 412.0\n"
    ),
):
    """Metrics in Prometheus' text format; docs/metrics.md lists them."""


class Pace(Body):
    """The mean number of answers by vote per second, over a window of time."""

    window_seconds: int
    answers_per_second: Number


class AnswersOfKind(Body):
    """Answers of one kind that this process gave since it started."""

    kind: Literal["fresh", "repeated", "classified"] = Field(
        description="new ones of the ensemble, recorded ones again, the published classifier's"
    )
    count: Count
    pace: list[Pace]


class Server(
    Body,
    json_schema_extra=like(
        {
            "version": "1.4.0",
            "state": "open",
            "roles": ["read"],
            "answers": [
                {
                    "kind": "fresh",
                    "count": 17,
                    "pace": [
                        {"window_seconds": 10, "answers_per_second": 0.5},
                        {"window_seconds": 300, "answers_per_second": 0.25},
                    ],
                }
            ],
            "refusals": {"budget-exhausted": 2},
        }
    ),
):
    """The server's process: its version, its state, and its counts of requests."""

    version: str = Field(description="of the installed package")
    state: Literal["opening", "open", "draining", "stopped"]
    roles: list[Literal["admin", "query", "read"]] = Field(
        description="of whoever asks; all where the server has no keys"
    )
    answers: list[AnswersOfKind] = Field(description="empty unless the release is open")
    refusals: dict[str, Count] = Field(description="requests and lines, by the problem's slug")


class Hour(Body):
    """The number of requests in one hour by kind, from all servers of the ledger."""

    time: Count = Field(description="at which it began, in seconds since 1970")
    fresh: Count = Field(description="new answers of the ensemble, stable and unstable")
    unstable: Count = Field(description="the unstable ones")
    repeated: Count = Field(description="recorded answers given again")
    classified: Count = Field(description="answers of the published classifier")
    refused: Count = Field(description="requests, and lines of streams")


class History(
    Body,
    json_schema_extra=like(
        {
            "hours": [
                {
                    "time": 1767225600,
                    "fresh": 17,
                    "unstable": 1,
                    "repeated": 4,
                    "classified": 0,
                    "refused": 2,
                }
            ]
        }
    ),
):
    """Hours with requests, in order, as far as their counts were written down."""

    hours: list[Hour]


class OverTime(Body):
    """Counts of answers over time since this server opened the release; 240 points at most."""

    times: list[Count]
    answered: list[Count]
    unstable: list[Count]


class OverAnswers(Body):
    """The number of unstable answers after each answer that raised it; at most 240 points."""

    answers: list[Count]
    unstable: list[Count]


class Rate(Body):
    """The mean number of unstable answers (or failed tests) per answer, with a confidence band."""

    mean: Number
    lower: Number
    upper: Number
    confidence: Number


class Ahead(Body):
    """An expected end of answering by vote: in answers, and in seconds at the present rate."""

    answers: Number
    seconds: Number | None = Field(
        None, description="absent where fewer than ten answers came in the last five minutes"
    )


class CutoffAhead(Body):
    """The expected end by the limit of unstable answers (cutoff); null if it may never come."""

    earliest: Ahead | None
    expected: Ahead | None
    latest: Ahead | None


class Forecast(Body):
    """A forecast, at the present rate of queries, of when answering by vote ends."""

    answers_per_second: Number = Field(description="0 where too few came to forecast by")
    confidence: Number
    first: Literal["limit", "cutoff", "either"]
    limit: Ahead | None = Field(description="null where it need not come")
    cutoff: CutoffAhead


class Alarm(Body):
    """Whether unstable answers come faster than the budget allows, by more than chance."""

    raised: bool
    raised_at_answer: int | None
    pace_allowed: Number
    evidence: Number
    evidence_needed: Number
    false_alarm_probability: Number


class Chain(Body):
    """The ledger entries whose hash chain this server has checked again, starting at the first."""

    checked_from: int
    checked_to: Count
    hash: str
    checked_at: int
    complete: bool = Field(description="true once it has come to the newest")


class Outlook(
    Body,
    json_schema_extra=like(
        {
            "time": 1767225660,
            "opened_at": 1767225600,
            "pace": [
                {"window_seconds": 10, "answers_per_second": 0.5},
                {"window_seconds": 300, "answers_per_second": 0.25},
            ],
            "over_time": {
                "times": [1767225600, 1767225630, 1767225659],
                "answered": [2, 12, 17],
                "unstable": [0, 1, 1],
            },
            "chain": {
                "checked_from": 1,
                "checked_to": 12,
                "hash": HASH,
                "checked_at": 1767225660,
                "complete": True,
            },
            "over_answers": {"answers": [9], "unstable": [1]},
            "unstable_rate": {
                "mean": 0.0588,
                "lower": 0.0015,
                "upper": 0.2869,
                "confidence": 0.95,
            },
            "forecast": {
                "answers_per_second": 0.25,
                "confidence": 0.9,
                "first": "either",
                "limit": {"answers": 983, "seconds": 3932.0},
                "cutoff": {
                    "earliest": {"answers": 5, "seconds": 20.0},
                    "expected": {"answers": 68.0, "seconds": 272.0},
                    "latest": {"answers": 5892, "seconds": 23568.0},
                },
            },
            "alarm": {
                "raised": False,
                "raised_at_answer": None,
                "pace_allowed": 0.005,
                "evidence": 3.1,
                "evidence_needed": 100.0,
                "false_alarm_probability": 0.01,
            },
        }
    ),
):
    """Past answers and a forecast; times are seconds since 1970, and null means unknown."""

    time: int = Field(description="of this outlook")
    opened_at: int = Field(description="when this server opened the release")
    pace: list[Pace]
    over_time: OverTime
    chain: Chain
    over_answers: OverAnswers | None
    unstable_rate: Rate | None = Field(description="null before the first answer too")
    forecast: Forecast | None = Field(
        description="null unless the ensemble answers, and by a limit"
    )
    alarm: Alarm | None = Field(description="null where unstable answers cannot run out first")
