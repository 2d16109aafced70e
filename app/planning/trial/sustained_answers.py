"""The rate of answers that a release can give for ever if rows are added regularly.

A generation is appended for every period, and each pays for T unstable answers.  With G of them
active and a share u(G) of queries unstable, a period brings T hits and a hit uses G of them: so
``T (1 - u(G)) / (G u(G))`` stable answers a period go on for ever.  With less demand the active set
grows and u falls; with more it shrinks to nothing.

u(G) is that of made-up people (``agreement.py``), for G times as many votes as one generation has.
It holds where all generations have labels of one labelling (``pooled``, ``inherit``,
``cohort``); with labellings of their own they disagree more.
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
        generation_count: G.
        unstable: u(G), for the middle one of the made-up rules.
        unstable_cautious: the same, which nine made-up rules in ten do not exceed.
        sustained: stable answers a period that go on for ever, at the first.
        sustained_cautious: the same at the second.

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
        companies: in the order of G.
        demand: answers wanted a period.
        cutoff: T of each generation.
        quorum: the least G at which the demand is sustained with caution; None where none is.
        unit: what a generation is made of, rows or persons.
        size: how many of them it has, n_g.

    """

    companies: tuple[Company, ...]
    demand: int
    cutoff: int
    quorum: int | None
    unit: Unit
    size: int | None


def sustained_answers(unstable: float, *, cutoff: int, generation_count: int) -> float:
    """Return the stable answers per period that a number of batches of rows give for ever.

    It is ``T (1 - u) / (G u)``: G batches, T unstable answers for each, a fraction u unstable.
    """
    return cutoff * (1 - unstable) / (generation_count * unstable)


def sustained(plan: Plan, trial: Trial, *, demand: int) -> Sustained | None:
    """Return the lasting rates of answers of a release to which batches of rows are added.

    Args:
        plan: of one generation: its n, k and table.
        trial: whom and what to try.
        demand: answers wanted a period.

    Returns:
        None where the learner takes too long to be tried, or nothing is tested.

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
