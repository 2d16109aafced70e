"""The command line with test doubles in it: failures that quote private values, and leaks.

Run by the canary tests::

    python -m tests.canary.doubled DOUBLES.json serve --config conclave.toml

DOUBLES.json has ``faults``, a list, and ``leaks``, a text for each place that is to leak
it.  Logs are at debug level, and an audit makes fewer runs.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import structlog

from app import main as composition
from app.answering import answer_query
from app.answering import service as conclave_service
from app.cli import logs, run
from app.http import application, problems
from app.http.dashboard.page import page_responses
from app.http.monitoring import tracing
from app.http.openapi.openapi_document import build_document
from app.http.route_handling import FreshDocument
from app.privacy.voting.tallies import private_tallies
from app.release import drawing as draw_ensemble
from app.release.views.budget import Budget, ReleaseName, budget_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Whatever could trace, measure or dump is asked to, on the console.
LOUD: Final = {
    "PYTHONFAULTHANDLER": "1",
    "PYTHONWARNINGS": "default",
    # Spans are sent soon, so that a test need not wait.
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "CONCLAVE_LOGS__REQUESTS": "true",
    **{f"OTEL_{each}_EXPORTER": "console" for each in ("TRACES", "METRICS", "LOGS")},
}
AUDIT_STEPS = 20_000
AUDIT_RUNS = 12


def replace(owner: object, name: str, double: object) -> None:
    """Put a double in the place of a function."""
    setattr(owner, name, double)


def fail_with_rows(*arguments: Any, **named: Any) -> NoReturn:
    """Fail as a library does that quotes what it was given."""
    given = [*arguments, *named.values()]
    quoted = [getattr(each, "values", each) for each in given]
    raise ValueError([each.tolist() if hasattr(each, "tolist") else each for each in quoted])


def fail_with_votes(*arguments: Any) -> NoReturn:
    """Fail after the votes, and quote them."""
    raise ValueError(private_tallies(*arguments), arguments)


def log_it(text: str) -> None:
    """Log a text with every batch of votes."""

    def tallies(*arguments: Any) -> object:
        structlog.get_logger("conclave.service").debug(f"voted {text}")
        return private_tallies(*arguments)

    replace(answer_query, "private_tallies", tallies)


def reply_it(text: str) -> None:
    """Put a text into the budget."""

    def budget(*at: Any) -> Budget:
        return budget_view(*at).model_copy(update={"release": ReleaseName(name=text)})

    replace(conclave_service, "budget_view", budget)


def head_it(text: str) -> None:
    """Add a header to the reads."""
    begin = FreshDocument.init_headers

    def with_header(self: FreshDocument, headers: Any = None) -> None:
        begin(self, headers)
        self.headers["x-more"] = text

    replace(FreshDocument, "init_headers", with_header)


def refuse_with_it(text: str) -> None:
    """Add a text to every refusal."""
    replace(problems, "_public_text", lambda detail: f"{detail}: {text}")


def show_it(text: str) -> None:
    """Add a text to the page."""

    def page() -> Any:
        replies = page_responses()
        reply = replies["/"]
        reply.body = bytes(reply.body) + text.encode()
        reply.headers["content-length"] = str(len(reply.body))
        return replies

    replace(composition, "page_responses", page)


def describe_it(text: str) -> None:
    """Add a text to the OpenAPI document."""

    def document(*, with_keys: bool) -> dict[str, Any]:
        return build_document(with_keys=with_keys) | {"x-more": text}

    replace(application, "build_document", document)


def export_it(text: str) -> None:
    """Add a text to the metadata of a model."""
    exporter = import_module("app.release.classifier.onnx.onnx_model")
    metadata = exporter._metadata
    replace(exporter, "_metadata", lambda document: metadata(document) | {"more": text})


def print_it(text: str) -> None:
    """Print a text on stderr."""
    sys.stderr.write(f"{text}\n")


def trace_it(text: str) -> None:
    """Add an attribute to every span."""
    end = tracing.Tracing.end

    def tell(self: Any, span: Any, attributes: Any, *, failed: bool) -> None:
        end(self, span, {**attributes, "more": text}, failed=failed)

    replace(tracing.Tracing, "end", tell)


def _configure_all(**options: Any) -> None:
    """Configure the logs at debug level, whatever they are asked for."""
    _configure(**options | {"level": logging.DEBUG})


_configure = logs.configure_logs
FAULTS: Final = {
    "vote": (answer_query, "private_tallies", fail_with_votes),
    "opening": (draw_ensemble, "fit_ensemble", fail_with_rows),
    "learn": (composition, "learn", fail_with_rows),
    "statistics": (composition, "open_at_once", fail_with_rows),
}
LEAKS: Final[dict[str, Callable[[str], None]]] = {
    "log": log_it,
    "reply": reply_it,
    "header": head_it,
    "problem": refuse_with_it,
    "page": show_it,
    "openapi": describe_it,
    "onnx": export_it,
    "stderr": print_it,
    "trace": trace_it,
}


def put_doubles(file: Path, commands: Sequence[str]) -> None:
    """Put the doubles that a file wants in place of what they double."""
    wanted = json.loads(file.read_text("utf-8"))
    replace(logs, "configure_logs", _configure_all)
    logging.getLogger().setLevel(logging.DEBUG)
    if "audit" in commands:
        replace(import_module("app.auditing.audit"), "STEPS_QUICK", AUDIT_STEPS)
        replace(import_module("app.cli.audit.audited_releases"), "RUNS_QUICK", AUDIT_RUNS)
    for fault in wanted.get("faults", ()):
        replace(*FAULTS[fault])
    for place, text in wanted.get("leaks", {}).items():
        LEAKS[place](text)


def run_into(output: Path, file: Path, runs: Sequence[Sequence[str]]) -> None:
    """Run commands in this process, which is theirs, and write both streams to a file."""
    for name in [name for name in os.environ if name.startswith("CONCLAVE_")]:
        del os.environ[name]
    os.environ |= LOUD
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(descriptor, stream)
    put_doubles(file, runs[0])
    for arguments in runs:
        run(list(arguments))
    sys.stdout.flush()
    sys.stderr.flush()


if __name__ == "__main__":
    # As LOUD makes every interpreter that starts anew; this one may be forked.
    faulthandler.enable()
    warnings.simplefilter("default")
    put_doubles(Path(sys.argv[1]), sys.argv[2:])
    sys.exit(run(sys.argv[2:]))
