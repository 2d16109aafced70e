"""The unit of privacy: a row of the source, or a person with all rows.

The public number n counts rows. If the setting ``data.person`` names a column that identifies
persons, n counts persons everywhere, also in the first ledger entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.settings.settings import Settings

Unit = Literal["row", "person"]
PERSON: Final = "data.person"
NO_PRIVATE_GRID: Final = f'must be "public" where {PERSON} names persons'
COUNTS: Final[dict[Unit, str]] = {"row": "data.rows", "person": "data.persons"}
"""Parameter of the first entry that has the public n, by the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitInWords:
    """The words for the unit of privacy (row or person) in texts for people.

    Attributes:
        learned_from: the name of what n counts, for example ``private records``.
        protected: what the privacy promise protects.
        neighbours: the name of the neighbouring relation, for example ``replace one record``.
        data_sets: the neighbouring relation as a sentence.
        public: what the privacy promise does not protect.
        difference: the neighbouring relation in symbols.
        cut: how units are divided into chunks for the models, as a sentence and in short.
        one_vote: how many votes one unit can change.
        redrawn: how chunks are made if units are drawn with replacement, as a sentence and in
            short.
        some_votes: how many votes one unit can change if it is drawn several times.

    """

    learned_from: str
    protected: str
    neighbours: str
    data_sets: str
    public: str
    difference: str
    cut: tuple[str, str]
    one_vote: str
    redrawn: tuple[str, str]
    some_votes: str


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
        redrawn=(
            (
                "This many groups are drawn from the records by lot, with replacement, and one "
                "learner is trained on each. A record may be in several groups, and the noise "
                "allows for that."
            ),
            "one record, at most ln(2 / delta) learners but for half of delta",
        ),
        some_votes="A record may lie in several chunks of the rows, and the constants allow for "
        "it.",
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
        redrawn=(
            (
                "This many groups are drawn from the persons by lot, with replacement, each with "
                "all of its rows, and one learner is trained on each. A person may be in several "
                "groups, and the noise allows for that."
            ),
            "one person, at most ln(2 / delta) learners but for half of delta",
        ),
        some_votes="A person may lie in several chunks of the persons, with all rows in each, and "
        "the constants allow for it.",
    ),
}


def refuse_unserved_persons(settings: Settings) -> None:
    """Refuse the setting ``hypotheses.grid = "private"`` if a person is the unit of privacy.

    With this setting the list of hypotheses is computed from the private rows. One person with many
    rows could change this list by any amount.

    Raises:
        ConfigurationError: the setting has the value ``private``, and a column names persons.

    """
    if settings.data.unit == "row":
        return
    if settings.hypotheses.grid == "private":
        # A person of r rows may add up to L^r labellings of them.
        raise ConfigurationError("hypotheses.grid", NO_PRIVATE_GRID)


def count_parameter(settings: Settings, count: int) -> dict[str, str]:
    """Return the first ledger entry's parameter for the public number of rows or persons."""
    return {COUNTS[settings.data.unit]: str(count)}


def opened_count(opened: ReleaseOpened) -> int | None:
    """Return the public number of rows or persons with which a release was opened."""
    parameters = opened.parameters
    return next((int(parameters[key]) for key in COUNTS.values() if key in parameters), None)
