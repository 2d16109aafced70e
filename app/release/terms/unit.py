"""The unit of privacy: a row of the source, or a person with any number of rows.

Where ``data.person`` names persons, n is their public number everywhere outside, the first
entry has it in the place of the number of rows, and what adds over rows without their weights
is refused here, by its setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from app.errors import ConfigurationError
from app.privacy.mechanisms import MECHANISMS
from app.privacy.published_learners import EXPONENTIAL

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.settings.settings import Settings

Unit = Literal["row", "person"]
PERSON: Final = "data.person"
COUNTS: Final[dict[Unit, str]] = {"row": "data.rows", "person": "data.persons"}
"""Parameter of the first entry that has the public n, by the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitInWords:
    """What is said of a unit to people.

    Attributes:
        learned_from: whose number is n.
        protected: what is protected.
        neighbours: the relation, by its name.
        data_sets: the relation, in a sentence.
        public: what is not protected.
        difference: the relation, in symbols.
        cut: how the unit becomes learners, and in short.
        one_vote: how far one unit reaches.

    """

    learned_from: str
    protected: str
    neighbours: str
    data_sets: str
    public: str
    difference: str
    cut: tuple[str, str]
    one_vote: str


IN_WORDS: Final[dict[Unit, UnitInWords]] = {
    "row": UnitInWords(
        learned_from="private records",
        protected="One record, which is one row of the source. A person with several rows is "
        "protected row by row: g rows of one person come with g times epsilon.",
        neighbours="replace one record",
        data_sets="Two data sets of as many rows, of which one row is replaced by any other.",
        public="The number of rows, the schema, the configuration and what clients ask are public.",
        difference="S and S' have n rows and differ in one",
        cut=(
            (
                "The records are cut into this many groups by lot, and one learner is trained on "
                "each. A record is in one group only, so it can change one vote and no more."
            ),
            "one record, one learner, one vote of k",
        ),
        one_vote="A record lies in one chunk of the rows, and moves one vote of a question",
    ),
    "person": UnitInWords(
        learned_from="persons with all their records",
        protected="One person: all rows of the source that name the same person, however many "
        "they are. How many a person has is private too.",
        neighbours="replace all records of one person",
        data_sets="Two data sets about as many persons, of which all rows of one are replaced by "
        "any number of rows of another.",
        public="The number of persons, the schema, the configuration and what clients ask are "
        "public; the number of rows is not.",
        difference="S and S' are about n persons and differ in the rows of one",
        cut=(
            (
                "The persons are cut into this many groups by lot, each with all of its rows, and "
                "one learner is trained on each group. A person is in one group only, and can "
                "change one vote and no more."
            ),
            "one person, one learner, one vote of k",
        ),
        one_vote="A person lies in one chunk of the persons with all rows, and moves one vote of a "
        "question",
    ),
}


def refuse_unserved_persons(settings: Settings) -> None:
    """Refuse what is not served where persons are named.

    Raises:
        ConfigurationError: names the setting.

    """
    if settings.data.unit == "row":
        return
    shares, learner = settings.privacy.shares, settings.classifier.learner
    for key, is_asked, instead in (
        ("privacy.calibration", MECHANISMS[settings.privacy.calibration].is_printed, '"profile"'),
        ("hypotheses.grid", settings.hypotheses.grid == "private", '"public"'),
        (
            "classifier.learner",
            shares.classifier > 0 and learner != EXPONENTIAL.name,
            f'"{EXPONENTIAL.name}"',
        ),
        ("privacy.shares.statistics", shares.statistics > 0, "0"),
    ):
        if is_asked:
            raise ConfigurationError(key, f"must be {instead} where {PERSON} names persons")


def count_parameter(settings: Settings, count: int) -> dict[str, str]:
    """Return what the first entry says of the public n."""
    return {COUNTS[settings.data.unit]: str(count)}


def opened_count(opened: ReleaseOpened) -> int | None:
    """Return the public n that a release was opened on."""
    parameters = opened.parameters
    return next((int(parameters[key]) for key in COUNTS.values() if key in parameters), None)
