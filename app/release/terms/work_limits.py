"""Refusal of training and draws that would take hours, before any budget is spent.

The duration is estimated from the settings and the public number of rows.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.learning.chunks import DEFAULT_RULE
from app.learning.registry import row_of
from app.release.terms.bound_settings import CODE_PATH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.learning.hypothesis import HypothesisClass
    from app.release.terms.privacy_unit import Unit
    from app.settings.settings import Settings

SEARCHED: Final = "hypotheses"
PUBLISHED: Final = "classifier"


def refuse_long_fit(
    settings: Settings,
    searched: HypothesisClass,
    *,
    row_count: int | None,
    chunk_count: int | None,
) -> None:
    """Raise an error for a learner whose training on chunks or answers would take hours.

    Args:
        settings: the whole configuration.
        searched: the hypothesis class of ``[hypotheses]``.
        row_count: the number of rows in all chunks together; None if it is unknown, and then the
            training of the models is not checked.
        chunk_count: the number k of chunks; None if it is unknown.

    Raises:
        ConfigurationError: the message names ``hypotheses.depth``.

    """
    fits = [(settings.learner, row_count, chunk_count)]
    if settings.student_may_follow:
        fits.append((settings.taught, settings.answers.queries, 1))
    for learner, rows, chunks in fits:
        if learner.estimator is None and rows is not None and chunks is not None:
            rule = learner.rule or DEFAULT_RULE
            row_of(searched).refuse_search(rule, searched, row_count=rows, chunk_count=chunks)


def refuse_long_draw(
    section: str, hypotheses: HypothesisClass, *, row_count: int | None, unit: Unit
) -> None:
    """Raise an error for a random draw of a tree that would take hours.

    Args:
        section: the section, ``hypotheses`` or ``classifier``, whose setting ``depth`` the error
            names.
        hypotheses: the hypothesis class of that section.
        row_count: the number of rows that the draw reads; None if it is unknown.
        unit: the unit of privacy; rows of persons have weights below 1.

    Raises:
        ConfigurationError: the message names the section's setting ``depth``.

    """
    if row_count is not None:
        with naming_section(section):
            row_of(hypotheses).refuse_rows(hypotheses, row_count, is_weighed=unit != "row")


@contextmanager
def naming_section(section: str) -> Iterator[None]:
    """Name ``[classifier]`` in errors of the ``with`` block, in place of ``[hypotheses]``."""
    try:
        yield
    except ConfigurationError as refused:
        is_shared = refused.key == CODE_PATH  # a folder is of both, and [classifier] has none
        if section == SEARCHED or is_shared or refused.key.partition(".")[0] != SEARCHED:
            raise
        key = section + refused.key.removeprefix(SEARCHED)
        raise ConfigurationError(key, refused.problem) from None
