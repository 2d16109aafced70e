"""One labelling drawn from the first batches of rows together (a cohort).

The cohort consists of generations (batches of rows) 1 to Q. Q is the quorum, the public least
number of generations that must vote. A labelling is a rule that gives each row the label on which
models are trained. The draw is by the exponential mechanism on the rows of all these generations,
with the smallest epsilon and the smallest delta that any of these generations has for relabelling.
Each record is in one draw only, which costs at most the share of the record's generation.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.encoding.encoded_rows import RowsByPart
from app.ledger.entries.generations import RELABEL, generations_of
from app.privacy.exponential import mechanism as exponential
from app.privacy.mechanism_registration import own
from app.release.generations.slots import read_slots
from app.release.terms.answer_terms import release_budget
from app.release.terms.draw_parameters import relabel_draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.learning.hypothesis import Hypothesis
    from app.ledger.entries.generations import Generation
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.terms.configuration import Configuration


def cohort_size(configuration: Configuration) -> int:
    """Return how many first batches of rows get one labelling together; 0 if none do."""
    rules = configuration.settings.generations
    return rules.quorum if rules is not None and rules.labelling == "cohort" else 0


def refuse_cohort(
    configuration: Configuration, known: Sequence[Generation], further_count: int
) -> None:
    """Raise an error for a batch of rows with which the joint labelling could not be drawn.

    Args:
        configuration: the release's public parameters, with the new batch's budget.
        known: the earlier generations.
        further_count: the number of records or persons in the new batch.

    Raises:
        ConfigurationError: the draw from all rows would take too long, or numerical error would
            cost more than the share for relabelling.

    """
    if len(known) < cohort_size(configuration):
        count = further_count + sum(each.slots for each in known)
        labelling_parameters(_at_least(configuration, known), count)


def draw_for_cohort(configuration: Configuration, ledger: Ledger, noise: NoiseSource) -> Hypothesis:
    """Return the labelling drawn from the rows of all batches of the cohort; secret.

    Args:
        configuration: the release's public parameters.
        ledger: the ledger, with the stored rows of all generations of the cohort.
        noise: the source of randomness.

    Raises:
        LedgerCorruptError: stored rows are missing or altered.

    """
    size = cohort_size(configuration)
    members = generations_of(ledger.read_state().generations).all[:size]
    invariant(len(members) == size, "a cohort is whole when its labelling is drawn")
    slots = [read_slots(ledger, each) for each in members]
    count = sum(each.count for each in slots)
    parameters = labelling_parameters(_at_least(configuration, members), count)
    costs = [[Fraction(text) for text in each.shares[RELABEL]] for each in members]
    is_paid = all(
        parameters.epsilon <= epsilon and parameters.delta_truncation <= delta
        for epsilon, delta in costs
    )
    invariant(is_paid, "every record of a cohort pays for the draw")
    values = np.concatenate([each.values for each in slots])
    labels = np.concatenate([each.labels for each in slots])
    weights = [each.weights for each in slots if each.weights is not None]
    encoded = RowsByPart(configuration.hypotheses.encode, values)
    joined = np.concatenate(weights) if weights else None
    return exponential.draw(parameters, (encoded, labels), noise, joined)


def _at_least(configuration: Configuration, members: Sequence[Generation]) -> Configuration:
    """Return the same with the least budget among its own and those of some generations."""
    epsilons = [Fraction(each.epsilon) for each in members]
    deltas = [Fraction(each.delta) for each in members]
    return configuration.with_budget(
        min([configuration.epsilon, *epsilons]), min([configuration.delta, *deltas])
    )


def labelling_parameters(configuration: Configuration, count: int) -> exponential.Parameters:
    """Return the parameters for drawing a labelling from ``count`` records or persons.

    Raises:
        ConfigurationError: the draw would take too long, or numerical error would cost more than
            the share for relabelling.

    """
    budget = release_budget(configuration.settings)
    parameters = budget and relabel_draw(configuration, budget, sampled_row_count=count)
    return own(parameters, exponential.Parameters)
