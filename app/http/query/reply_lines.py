"""The lines of a stream's reply: an answer or a problem each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from app.answering.answers import FirstAnswers
from app.answering.replay_index import Recorded
from app.answering.types import Answer
from app.errors import IntegrityError, RequestError, UnavailableError
from app.http.problems import problem_body

if TYPE_CHECKING:
    from collections.abc import Sequence


Refusal: TypeAlias = RequestError | UnavailableError | IntegrityError
Reply: TypeAlias = Answer | Refusal

_ENCODER: Final = msgspec.json.Encoder()
_BEGINNING: Final = '{"query_id":'
_NUMBER: Final = 0  # of an answer after which others of its kind are written


def encode_replies(replies: Sequence[Reply]) -> bytes:
    """Return a line for each reply."""
    if isinstance(replies, FirstAnswers):
        return _encode_first_answers(replies)
    return _ENCODER.encode_lines(
        [each if isinstance(each, Answer) else msgspec.Raw(problem_body(each)) for each in replies]
    )


def _encode_first_answers(answers: FirstAnswers) -> bytes:
    """Return what the encoder makes of answers that differ by their numbers, and little else."""
    kinds = [(each.label, each.stable) for each in answers.recorded]
    different = list(set(kinds))
    firsts = FirstAnswers([Recorded(_NUMBER, *kind) for kind in different], answers.schema)
    ends = dict(zip(different, map(_end, firsts), strict=True))
    pairs = zip(answers.recorded, kinds, strict=True)
    return "".join([f"{_BEGINNING}{each.query_id}{ends[kind]}" for each, kind in pairs]).encode()


def _end(answer: Answer) -> str:
    """Return what follows the number in the line of an answer, for all answers of its kind."""
    line = _ENCODER.encode_lines([answer]).decode()
    return line.removeprefix(f"{_BEGINNING}{_NUMBER}")
