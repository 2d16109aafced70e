"""The parameters of a release's answers; ``serve`` and ``simulate`` build the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.accounting.composition import Mechanism
from app.accounting.profile import calibrate, check
from app.errors import invariant
from app.mechanisms import stability
from app.mechanisms.universal import Parameters, Sequel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.accounting.composition import Charge
    from app.accounting.profile import ProfileTable
    from app.settings import Settings


def calibrate_answers(
    settings: Settings, charges: Mapping[Mechanism, Charge]
) -> ProfileTable | None:
    """Return the table of the answers' share; None where they have none."""
    charge = charges.get(Mechanism.ANSWERS)
    if charge is None:
        return None
    return calibrate(epsilon=charge.epsilon, delta=charge.delta, cutoff=settings.answers.cutoff)


def answering_parameters(
    settings: Settings,
    charges: Mapping[Mechanism, Charge],
    table: ProfileTable | None,
) -> Parameters:
    """Return the mechanism's parameters, once the table was verified anew.

    Raises:
        InvariantError: the table does not hold, or is another share's.

    """
    test = None
    if table is not None:
        charge = charges[Mechanism.ANSWERS]
        same = (table.epsilon, table.delta, table.cutoff) == (
            charge.epsilon,
            charge.delta,
            settings.answers.cutoff,
        )
        invariant(same, "the stability table is the one of the answers' share")
        check(table)
        test = stability.Parameters(table.thresholds, table.cutoff)
    return Parameters(
        stability=test,
        class_count=len(settings.data.classes),
        answer_limit=settings.answers.queries if test is not None else 0,
        after=_sequel(settings.answers.after),
        on_cutoff=_sequel(settings.answers.on_cutoff),
        unstable_gets_coin=settings.answers.unstable == "coin",
    )


def _sequel(name: str) -> Sequel:
    return Sequel.CLASSIFIER if name == "classifier" else Sequel.HALT
