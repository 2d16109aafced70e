"""The unit of privacy: a row of the source, or a person with any number of rows.

Where ``data.person`` names persons, n is their public number everywhere outside, the first
entry has it in the place of the number of rows, and what adds over rows without their weights
is refused here, by its setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.settings.settings import Settings

Unit = Literal["row", "person"]
PERSON: Final = "data.person"
COUNTS: Final[dict[Unit, str]] = {"row": "data.rows", "person": "data.persons"}
"""Parameter of the first entry that has the public n, by the unit."""


def refuse_unserved_persons(settings: Settings) -> None:
    """Refuse what is not served where persons are named.

    Raises:
        ConfigurationError: names the setting.

    """
    if settings.data.unit == "person":
        raise ConfigurationError(PERSON, "is not served by this version: name no person")


def count_parameter(settings: Settings, count: int) -> dict[str, str]:
    """Return what the first entry says of the public n."""
    return {COUNTS[settings.data.unit]: str(count)}


def opened_count(opened: ReleaseOpened) -> int | None:
    """Return the public n that a release was opened on."""
    parameters = opened.parameters
    return next((int(parameters[key]) for key in COUNTS.values() if key in parameters), None)
