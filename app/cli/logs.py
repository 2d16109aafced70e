"""Structured logs: one JSON line an event on stderr, fields from an allow-list."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import MutableMapping

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
    }
)


def configure_logs(*, level: int = logging.INFO) -> None:
    """Send every event to stderr; a field outside the allow-list is dropped.

    No features, votes, rows, exception texts or traceback locals can pass.

    Args:
        level: the least level that is printed, as in :mod:`logging`.

    """
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _allow_fields,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _allow_fields(
    logger: object, method: str, event: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    """Keep the fields that are public by their names."""
    del logger, method
    return {name: value for name, value in event.items() if name in FIELDS_ALLOWED}
