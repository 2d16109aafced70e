"""The rate of answers that a release can give for ever if rows are added regularly.

In every period one generation of rows is added, which can pay for T unstable answers. If G
generations vote and a fraction u(G) of the answers is unstable, each unstable answer is charged to
all G generations. If a unit is one unstable answer charged to one generation, a period brings T new
units and an unstable answer uses G units, so ``T (1 - u(G)) / (G u(G))`` stable answers per period
can continue for ever. If clients ask less, more generations vote and u falls; if they ask more,
fewer and fewer generations vote.

The fraction u(G) is measured on made-up people, whose labels come from made-up rules. All G
generations are assumed to get their labels from the same relabelling rule; if each generation has
its own rule, models disagree more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.planning.trial.forecast import unstable_rates
from app.planning.trial.trial_size import agreement_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.planning.plan import Plan
    from app.planning.trial.trial_size import Trial
    from app.release.terms.privacy_unit import Unit

COMPANIES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Numbers of active generations that are looked at."""
CAUTION: Final = 0.9
"""The share of made-up rules that are to be at most as unstable as the figure shown as cautious."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """The lasting rate of answers if a given number of batches of rows vote together.

    Attributes:
        generation_count: the number G of generations (batches of rows) that vote.
        unstable: the fraction u(G) of unstable answers, for the median of the made-up rules.
        unstable_cautious: the fraction of unstable answers that nine in ten made-up rules do not
            exceed.
        sustained: the stable answers per period that can continue for ever, at ``unstable``.
        sustained_cautious: the stable answers per period that can continue for ever, at
            ``unstable_cautious``.

    """

    generation_count: int
    unstable: float
    unstable_cautious: float
    sustained: float
    sustained_cautious: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained:
    """The lasting rates of answers for several numbers of batches of rows that vote together.

    Attributes:
        companies: the lasting rate for each number of generations (batches of rows), by increasing
            number.
        demand: the wanted number of answers per period.
        cutoff: the number T of unstable answers that each generation can pay for.
        quorum: the smallest number of generations at which the lasting rate is at least the demand
            under nine in ten made-up rules; None if no number suffices.
        unit: the unit of privacy, rows or persons.
        size: the number of rows or persons in a generation.

    """

    companies: tuple[Company, ...]
    demand: int
    cutoff: int
    quorum: int | None
    unit: Unit
    size: int | None


def sustained_answers(unstable: float, *, cutoff: int, generation_count: int) -> float:
    """Return the stable answers per period that a number of batches of rows can give for ever.

    The result is ``T (1 - u) / (G u)``, with the symbols below.

    Args:
        unstable: the fraction u of answers that are unstable.
        cutoff: the number T of unstable answers that each batch can pay for.
        generation_count: the number G of batches that vote together.

    """
    return cutoff * (1 - unstable) / (generation_count * unstable)


def sustained(plan: Plan, trial: Trial, *, demand: int) -> Sustained | None:
    """Return the lasting rates of answers of a release to which batches of rows are added.

    Args:
        plan: the plan of one generation, with its numbers of rows and models, and its noise.
        trial: the population and the learning method to try.
        demand: the wanted number of answers per period.

    Returns:
        The rates; None if training the models takes too long, or the mechanism has no unstable
        answers.

    """
    size, calibration = plan.answers.ensemble_size, plan.answers.calibration
    rows, rules = plan.answers.chunk_row_count, trial.rules(plan.request)
    cutoff = getattr(calibration, "cutoff", None)
    hits = getattr(calibration, "hit_probability", None)
    if size is None or not rows or cutoff is None or hits is None or rules is None:
        return None
    agreement = agreement_of(trial, rules, chunk_row_count=rows, ensemble_size=size)
    if agreement is None:
        return None
    table = np.array([hits(distance) for distance in range(COMPANIES[-1] * size // 2 + 1)])
    rates = {
        each: unstable_rates(lambda d: table[d.astype(np.int64)], agreement, each * size)
        for each in COMPANIES
    }
    found = tuple(_company(each, rates[each], cutoff) for each in COMPANIES)
    enough = (each.generation_count for each in found if each.sustained_cautious >= demand)
    return Sustained(
        companies=found,
        demand=demand,
        cutoff=cutoff,
        quorum=next(enough, None),
        unit=plan.request.unit,
        size=plan.request.row_count,
    )


def _company(count: int, rates: NDArray[np.float64], cutoff: int) -> Company:
    middle, cautious = float(np.median(rates)), float(np.quantile(rates, CAUTION))
    return Company(
        generation_count=count,
        unstable=middle,
        unstable_cautious=cautious,
        sustained=sustained_answers(middle, cutoff=cutoff, generation_count=count),
        sustained_cautious=sustained_answers(cautious, cutoff=cutoff, generation_count=count),
    )
