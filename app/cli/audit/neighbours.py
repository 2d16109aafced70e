"""Neighbouring data sets for an audit over HTTP, generated for the configured mechanism.

The operator's rows are never read. The audited release has the configured privacy promise,
calibration (rule that sets the noise), classes and behaviour after the last answer. Its rows are
generated, one per chunk, and each row has one number as its feature. There are so few rows that one
record has a large effect on the answers. Each model votes for the label of its only row on every
query, so that one record determines one vote.

If the unit of privacy is a person, every person has one row, except the person who differs between
the data sets, who has :data:`~app.auditing.hypothesis_draws.ROWS_OF_A_PERSON` rows in one or in
both of them.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from app.auditing.bounds_by_mechanism import AUDITED
from app.auditing.hypothesis_draws import ROWS_OF_A_PERSON
from app.auditing.transcripts.http_audit import Claim
from app.errors import invariant
from app.ledger.entries.fold import JOINT
from app.privacy.budget.composition import Mechanism
from app.release.terms.answer_terms import answering_registration, calibrate_answers, release_budget
from app.release.terms.configuration import charges_by_mechanism
from app.settings.settings import Settings
from app.settings.toml_and_environment import sqlite_address

if TYPE_CHECKING:
    from app.settings.release_sections import PrivacySettings

Row: TypeAlias = tuple[float, int]
"""The number, and the index of the label's class."""

NOWHERE: Final = Path()
ROWS_FILE: Final = "rows.csv"
LEDGER_FILE: Final = "conclave.db"
FEATURE: Final = "generated number"
LABEL: Final = "generated label"
WHO: Final = "generated person"
ABOVE: Final = 0.9
BELOW: Final = 0.2
VOTES_OF_A_FLIP: Final = 4
QUESTIONS_MAX: Final = 64
HITS_BEYOND: Final = 3
"""Hits more than the cutoff that are expected of the questions of a run, if they were given."""
VOTES_MAX: Final = 20_000
CLIENT_SECONDS_MAX: Final = 3600
"""Of a silent client: the only one is ours, and may wait for a busy machine."""
COPIES: Final = (
    (ROWS_OF_A_PERSON, 1),
    (1, ROWS_OF_A_PERSON),
    (ROWS_OF_A_PERSON, ROWS_OF_A_PERSON),
)
"""Rows of the person who differs, on either side of each pair: of a count, and of labels."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two data sets that differ in one record, and the number of queries to ask about them.

    Attributes:
        name: a description of the pair.
        votes: the number k of models, which is also the number of chunks.
        rows: the rows of each data set, equally many in both; if the unit of privacy is a person,
            one row of each person.
        questions: the number of distinct vectors to query before the server is first restarted.
        copies: the number of copies of the first row, which is the row that differs, in each data
            set; it exceeds 1 only if the unit of privacy is a person.

    """

    name: str
    votes: int
    rows: tuple[tuple[Row, ...], tuple[Row, ...]]
    questions: int
    copies: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        """Refuse data sets that are no neighbours."""
        one, other = self.rows
        invariant(one[0] != other[0], "neighbours differ in the first record")
        invariant(one[1:] == other[1:], "neighbours differ in one record")


def audited_claim(settings: Settings) -> Claim:
    """Return the total epsilon and delta promised for the mechanisms of an audited release."""
    charges = charges_by_mechanism(_release_settings(settings, votes=VOTES_OF_A_FLIP))
    draws = {Mechanism.RELABEL, Mechanism.ANSWERS}
    # What is one account promises its whole, whatever of it is drawn.
    if settings.accounting == JOINT or "classifier" in settings.answers.sequels.values():
        draws.add(Mechanism.CLASSIFIER)
    kept = [charge for mechanism, charge in charges.items() if mechanism in draws]
    return Claim(
        epsilon=sum((charge.epsilon for charge in kept), start=Fraction(0)),
        delta=sum((charge.delta for charge in kept), start=Fraction(0)),
    )


def neighbours(settings: Settings) -> tuple[Neighbours, ...]:
    """Return the pairs of neighbouring data sets that reveal most about the configured mechanism.

    For the calibration ``paper`` (noise by published formulas) no pair is returned, because its
    chunks need too many rows.

    Raises:
        ConfigurationError: no parameters fit the budget.

    """
    base = _release_settings(settings, votes=VOTES_OF_A_FLIP)
    calibration = calibrate_answers(base, release_budget(base))
    invariant(calibration is not None, "answers have a share")
    if calibration is None or answering_registration(base).is_printed:
        return ()
    audited = AUDITED[answering_registration(base).name]
    near, answered = (
        min(VOTES_MAX, votes(calibration)) for votes in (audited.votes_near, audited.votes_answered)
    )
    cutoff = calibration.cutoff or 0
    few, many = (
        min(QUESTIONS_MAX, questions) for questions in (cutoff + 1, 2 * (cutoff + HITS_BEYOND))
    )
    scale = 1 / Fraction(base.privacy.sampling)
    pairs = [
        _one_vote_decides(VOTES_OF_A_FLIP, scale=scale, questions=few),
        _one_vote_less(near, scale=scale, questions=many),
    ]
    if base.privacy.shares.relabel > 0:
        pairs.append(_one_label_decides(answered, scale=scale, questions=few))
    if base.data.unit == "row":
        return tuple(pairs)
    return tuple(replace(pair, copies=copies) for pair, copies in zip(pairs, COPIES, strict=False))


def served_settings(settings: Settings, pair: Neighbours, folder: Path) -> Settings:
    """Return the settings of one audited release, whose rows and ledger are in ``folder``."""
    return _release_settings(settings, votes=pair.votes, folder=folder)


def rows_text(pair: Neighbours, side: int, classes: tuple[str, ...]) -> str:
    """Return the rows of one of the two data sets as CSV, with each row's person."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow((FEATURE, LABEL, WHO))
    for person, (number, label) in enumerate(pair.rows[side]):
        copies = 1 if person else pair.copies[side]
        writer.writerows([(number, classes[label], person)] * copies)
    return text.getvalue()


def _release_settings(settings: Settings, *, votes: int, folder: Path = NOWHERE) -> Settings:
    """Return settings with the promise and the answers of others, and generated rows."""
    answers = {"ensemble": votes, "reply_padding_milliseconds": None}
    return Settings.model_validate(
        {
            "release": {"name": "audited over HTTP"},
            "data": {
                "source": str(folder / ROWS_FILE),
                "label": LABEL,
                "person": WHO if settings.data.unit == "person" else None,
                "classes": settings.data.classes,
                "features": [{"name": FEATURE, "kind": "numeric", "bounds": [0, 1]}],
                "dead_features": "allow",  # the worst rows may well be all alike
            },
            "hypotheses": {"class": "stumps", "grid": settings.hypotheses.grid},
            "privacy": _served_privacy(settings),
            "answers": settings.answers.model_copy(update=answers),
            "ledger": {"url": sqlite_address(folder / LEDGER_FILE)},
            "server": {
                "port": 0,
                "header_seconds_max": CLIENT_SECONDS_MAX,
                "keep_alive_seconds_max": CLIENT_SECONDS_MAX,
            },
        }
    )


def _served_privacy(settings: Settings) -> PrivacySettings:
    """Leave out the statistics, which need public points, and the delta of any other learner."""
    privacy, answers = settings.privacy, settings.privacy.delta_shares.answers
    kept = settings.delta_share("answers")
    if answers is None and kept < 1:
        answers = Decimal(kept.numerator) / kept.denominator
    return privacy.model_copy(
        update={
            "accounting": settings.accounting,
            "shares": privacy.shares.model_copy(update={"statistics": Decimal(0)}),
            "delta_shares": privacy.delta_shares.model_copy(
                update={"answers": answers, "classifier": None, "statistics": None}
            ),
        }
    )


def _one_vote_decides(votes: int, *, scale: Fraction, questions: int) -> Neighbours:
    """Halve the votes: the plurality is another where one record is."""
    half = math.ceil(votes * scale / 2)
    common = ((BELOW, 0),) * (half - 1) + ((ABOVE, 1),) * half
    rows = ((BELOW, 0), *common), ((ABOVE, 1), *common)
    return Neighbours("one vote decides the label", votes, rows, questions)


def _one_vote_less(votes: int, *, scale: Fraction, questions: int) -> Neighbours:
    """Let all agree, or all but one: near the threshold, or far out where votes are noisy."""
    count = math.ceil(votes * scale)
    common = ((ABOVE, 1),) * (count - 1)
    rows = ((ABOVE, 1), *common), ((BELOW, 0), *common)
    return Neighbours("one vote moves a hit's chance", votes, rows, questions)


def _one_label_decides(votes: int, *, scale: Fraction, questions: int) -> Neighbours:
    """Halve the labels of rows that are alike in all else, but for one: most relabel all."""
    half = math.ceil(votes * scale / 2)
    common = ((ABOVE, 0),) * half + ((ABOVE, 1),) * half
    rows = ((ABOVE, 0), *common), ((ABOVE, 1), *common)
    return Neighbours("one label decides the relabelling", votes, rows, questions)
