"""What a restart must have in common with the release that the ledger holds."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from app.errors import ReleaseMismatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.ledger.events import ReleaseOpened

ABSENT: Final = "nothing"
"""What is said in the place of a parameter that one side does not have."""


def check_parameters(release: ReleaseOpened, given: Mapping[str, str]) -> None:
    """Compare public parameters with those that the release was opened with.

    Args:
        release: the ledger's first entry.
        given: what the configuration says now, as canonical strings.

    Raises:
        ReleaseMismatchError: names the first parameter that differs, in the
            configuration's order, with both of its values.

    """
    for key in [*given, *(key for key in release.parameters if key not in given)]:
        recorded, stated = release.parameters.get(key, ABSENT), given.get(key, ABSENT)
        if recorded != stated:
            raise ReleaseMismatchError(
                key,
                f"the release in the ledger was opened with {recorded}, "
                f"and the configuration says {stated}",
            )


def check_fingerprint(release: ReleaseOpened, fingerprint: str) -> None:
    """Compare the keyed fingerprint of the rows with the release's.

    Raises:
        ReleaseMismatchError: the rows are other rows; says nothing of them.

    """
    if not hmac.compare_digest(release.fingerprint, fingerprint):
        raise ReleaseMismatchError(
            "data.source", "these are not the rows that the release in the ledger was opened on"
        )
