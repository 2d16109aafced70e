"""An opening on rows of which a feature tells nothing is refused before the charge."""

from __future__ import annotations

import numpy as np
import pytest

from app.data.rows import PrivateRows
from app.errors import DataError
from tests.builders.release.learning import learned
from tests.builders.release.opened_release import NoNoise, changed
from tests.builders.release.small_release import SmallRelease, private_rows

ALLOWED = {"data__dead_features": "allow"}
REFUSED = (
    'data.dead_features: learners get nothing from "margin" (every value lies on or beyond one '
    'bound), "group" (none of its categories occurs), and nothing is charged; '
)


def dead_rows() -> PrivateRows:
    """Return the small release's rows, all on a bound and of other groups."""
    rows = private_rows()
    return PrivateRows(values=np.tile([-50.0, 2.0], (rows.count, 1)), labels=np.array(rows.labels))


def test_serving_and_learning_refuse_them_before_the_charge(small_release: SmallRelease) -> None:
    """The one line names every such feature and why, and the ledger stays empty."""
    with pytest.raises(DataError) as refused:
        small_release.open(rows=dead_rows(), noise=NoNoise())
    assert str(refused.value).startswith(REFUSED)
    with pytest.raises(DataError):
        learned(small_release, rows=dead_rows(), noise=NoNoise())
    assert small_release.ledger().read_state().head.sequence == 0


def test_the_setting_opens_all_the_same_and_is_not_bound(small_release: SmallRelease) -> None:
    """A release that was allowed to open goes on without the setting, which no entry has."""
    opened = changed(small_release, **ALLOWED).open(rows=dead_rows())
    assert opened.state.release is not None
    assert "data.dead_features" not in opened.state.release.parameters
    again = small_release.open(rows=dead_rows(), noise=NoNoise())
    assert again.state.head == opened.state.head
