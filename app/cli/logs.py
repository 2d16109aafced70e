"""Structured logs: one JSON line per event on stderr, with fields from an allow-list."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import MutableMapping

STDERR: Final = 2
FIELDS_ALLOWED: Final = frozenset(
    {
        "timestamp",
        "level",
        "event",
        "path",
        "problem",
        "error",
        "count",
        "release",
        "entry_number",
        "first_query_id",
        "last_query_id",
        "step",
        "phase",
        "library",
        "key",
        "learner",
        "answer_time",
        "request_id",
        "route",
        "span_id",
        "status",
        "trace_id",
    }
)


def configure_logs(*, level: int = logging.INFO, console: bool = False) -> None:
    """Write every log event to stderr; a field outside the allow-list is dropped.

    Features, votes, rows, exception texts and traceback locals are never logged; an event of a
    library is logged without its text.

    Args:
        level: the lowest level that is printed, as in :mod:`logging`.
        console: whether to print readable lines instead of JSON.

    """
    _silence_libraries()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _allow_fields,
            _renderer(console=console),
        ],
        logger_factory=lambda *_: _LineLogger(),
        cache_logger_on_first_use=True,
    )


def level_of(name: str) -> int:
    """Return the number of a log level by its name in the settings."""
    return {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}[name]


def _renderer(*, console: bool) -> structlog.typing.Processor:
    """Return what makes an event a line; colours only where a person sees them."""
    if console:
        return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    return _as_json


# Made once: json.dumps makes an encoder for each line, in a fifth of the line's time.
_encode: Final = json.JSONEncoder(sort_keys=True, default=repr).encode


def _as_json(logger: object, method: str, event: MutableMapping[str, object]) -> str:
    """Return an event as one line of JSON, its fields in the order of their names."""
    del logger, method
    return _encode(event)


class _LineLogger:
    """Writes one line an event to stderr; a line that cannot be written is lost, and no more.

    A full disk under the log, or a pipe that nobody reads any more, must not
    stop a release: an answer is told of after its commit, by whoever gave it.
    """

    def write(self, line: str) -> None:
        """Write a log line whole, or drop it."""
        with _WRITING:
            try:
                if sys.stderr is not sys.__stderr__:
                    sys.stderr.write(f"{line}\n")
                    return
                # Past the stream's buffer, which would fail again with every later line.
                os.write(STDERR, f"{line}\n".encode())
            except (OSError, ValueError):
                pass

    debug = info = warning = error = critical = write


_WRITING: Final = threading.Lock()


class _LibraryLog(logging.Handler):
    """Reports that a library logged a warning or worse, without its text.

    The web server and the event loop log exceptions with their texts.  Without
    any handler Python would print them as they are.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Log only the library's name and the level of a library's message."""
        log = structlog.get_logger("conclave.outside")
        tell = log.error if record.levelno >= logging.ERROR else log.warning
        tell("library_message", library=record.name)


def _silence_libraries() -> None:
    root = logging.getLogger()
    if not any(isinstance(handler, _LibraryLog) for handler in root.handlers):
        root.addHandler(_LibraryLog(logging.WARNING))
    threading.excepthook = _tell_of_exception
    sys.unraisablehook = _tell_of_exception


def _tell_of_exception(raised: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    """Name the class of an exception that nobody handles, e.g. in a learner's destructor."""
    name = raised.exc_type.__name__
    structlog.get_logger("conclave.outside").error("exception_ignored", error=name)


def _allow_fields(
    logger: object, method: str, event: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    """Keep the fields that are public by their names."""
    del logger, method
    return {name: value for name, value in event.items() if name in FIELDS_ALLOWED}
