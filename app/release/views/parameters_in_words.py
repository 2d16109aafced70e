"""The public parameters of a release in plain words, each with its formula.

For people who operate a release and have not read the papers.  Everything is public:
the configuration, the calibrated mechanism, the laws that figures follow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from app.privacy.budget.composition import Mechanism
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability
from app.release.classifier.linear import is_linear
from app.release.opening import ROW_COUNT
from app.release.terms.answer_terms import PAPER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.privacy.voting.universal import Parameters
    from app.release.release import Release

WORD: Final = 1 << 64
HIT_SELDOM: Final = 0.01
PERSON: Final = "P[seen | with this record] <= e^epsilon * P[seen | with another] + delta"
ENDS: Final = {
    "halt": "new queries are refused, and recorded ones get their answers again",
    "classifier": "a classifier is published, which answers without limit and costs nothing more",
    "student": "a student of the answers is published, which answers without limit, free",
}
SHARES: Final = {
    "relabel": (
        "One noisy rule relabels the records before any learner sees them.",
        "a rule is drawn with weight exp(-epsilon_share * errors / 2)",
    ),
    "answers": (
        "Pays for every answer of the ensemble together, whatever is asked and how often.",
        "charged once, whole: T bounds what all answers can tell",
    ),
    "classifier": (
        "Pays for the published classifier, drawn once.",
        "{drawn} is drawn with weight exp(-epsilon_share * errors / 2)",
    ),
    "statistics": (
        "Pays for the table of means of hypotheses, drawn once.",
        "private multiplicative weights over the cells of a public grid",
    ),
}
DRAWN: Final = {
    "thresholds": "a threshold",
    "stumps": "a tree of one test",
    "intervals": "an interval",
    "rectangles": "a rectangle",
    "halfspaces": "a halfspace",
    "trees": "a tree",
    "cells": "a label for each public cell",
}
"""What is published of a class; of predictors, those listed or of one's own, it is one."""

OF_PREDICTORS: Final = "one of the class's predictors"
LINEAR: Final = (
    "Pays for the published classifier, a linear score that is learned once.",
    "every step descends by a sum over all records + discrete Gaussian noise",
)
CUT: Final = (
    (
        "The records are cut into this many groups by lot, and one learner is trained on each. A "
        "record is in one group only, so it can change one vote and no more."
    ),
    "one record, one learner, one vote of k",
)
REDRAWN: Final = (
    (
        "This many groups are drawn from the records by lot, with replacement, and one learner is "
        "trained on each. A record may be in several groups, and the noise allows for that."
    ),
    "one record, at most ln(2 / delta) learners but for half of delta",
)


class Explained(NamedTuple):
    """One parameter: its name, its value, what it means, and the formula behind it."""

    name: str
    value: str
    meaning: str
    formula: str


def explained(release: Release) -> list[Explained]:
    """Return every parameter of ``release`` that an operator may ask about, in reading order."""
    return [*_promise(release), *_ensemble(release), *_ending(release), *_figures(release)]


def _promise(release: Release) -> Iterator[Explained]:
    configuration = release.configuration
    epsilon, delta = float(configuration.epsilon), float(configuration.delta)
    yield Explained(
        "epsilon (ε)",
        _number(epsilon),
        "How much one person's record can change what anyone sees, over the whole life of the "
        f"release: apart from delta, nothing becomes more than {_number(_grown(epsilon))} times as "
        "likely. Smaller is more private.",
        PERSON,
    )
    yield Explained(
        "delta (δ)",
        _number(delta),
        "A small probability that the promise of epsilon leaves out. Keep it far below one over "
        "the number of records.",
        PERSON,
    )
    shares = {**SHARES, Mechanism.CLASSIFIER.value: _classifier(release)}
    for mechanism, (meaning, formula) in shares.items():
        share = next(
            (each for name, each in configuration.charges.items() if name.value == mechanism), None
        )
        if share is not None:
            value = f"epsilon {_number(float(share.epsilon))}, delta {_number(float(share.delta))}"
            yield Explained(f"share of {mechanism}", value, meaning, formula)


def _classifier(release: Release) -> tuple[str, str]:
    """Return how the published classifier of a release comes about, and its formula."""
    settings, opened = release.configuration.settings, release.state.release
    row_count = None if opened is None else int(opened.parameters[ROW_COUNT])
    if is_linear(settings, row_count=row_count):
        return LINEAR
    meaning, formula = SHARES[Mechanism.CLASSIFIER.value]
    return meaning, formula.format(drawn=DRAWN.get(settings.published.kind, OF_PREDICTORS))


def _ensemble(release: Release) -> Iterator[Explained]:
    size = release.ensemble_size
    if size:
        is_redrawn = release.configuration.settings.privacy.calibration == PAPER
        meaning, formula = REDRAWN if is_redrawn else CUT
        yield Explained("ensemble (k)", f"{size:,} learners", meaning, formula)
    yield from _mechanism(release.mechanism)
    coin = release.mechanism.unstable_gets_coin
    if release.mechanism.cutoff is not None:
        yield Explained(
            "unstable answers",
            "a random label" if coin else "no label",
            "What a client gets where the learners do not agree far enough: "
            + ("a label by lot, marked unstable." if coin else "no label, marked unstable.")
            + " It tells nothing of the votes.",
            "unstable with probability p(d), d = max(0, ceil(lead / 2) - 1)",
        )


def _mechanism(parameters: Parameters) -> Iterator[Explained]:
    test = parameters.answering
    if isinstance(test, stability.Parameters):
        yield _profile(test)
    elif isinstance(test, sparse_vector.Parameters):
        yield Explained(
            "stability test",
            f"threshold {test.threshold}",
            "A query gets its label when the leading label stays ahead of the noise added to its "
            "lead. Few and split votes fail this, and count as unstable.",
            f"label if d + Lap({_number(float(test.query_noise.scale))}) > {test.threshold} "
            f"+ Lap({_number(float(test.threshold_noise.scale))})",
        )
    elif isinstance(test, noisy_vote.Parameters):
        yield Explained(
            "noisy vote",
            f"noise of variance {_number(float(test.vote_noise.variance))}",
            "Noise is added to the votes and the winner is released. Every answer has a label.",
            "label = argmax of votes + discrete Gaussian noise",
        )


def _profile(test: stability.Parameters) -> Explained:
    needed = next(
        (d for d, threshold in enumerate(test.thresholds) if threshold < HIT_SELDOM * WORD), None
    )
    lead = "" if needed is None else f"a lead of {2 * needed + 1:,} votes"
    return Explained(
        "stability test",
        lead or "calibrated",
        "A query whose leading label is this far ahead of the second gets its label 99 times in "
        "100. The closer the vote, the likelier the answer is unstable: a close vote might turn "
        "on one record.",
        f"unstable if a random 64-bit word < P(d); P(0) / 2^64 = {test.thresholds[0] / WORD:.9f}, "
        "d = max(0, ceil(lead / 2) - 1)",
    )


def _ending(release: Release) -> Iterator[Explained]:
    mechanism = release.mechanism
    if mechanism.answer_limit:
        yield Explained(
            "limit of answers (m)",
            f"{mechanism.answer_limit:,} answers",
            "Each new query uses one. Asking the same again is free. After the last one, "
            f"{ENDS[mechanism.after.value]}.",
            "answered <= m",
        )
    if mechanism.cutoff is not None:
        unit = "units" if mechanism.with_scores else "unstable answers"
        yield Explained(
            "cutoff (T)",
            f"{mechanism.cutoff:,} {unit}",
            (
                "An answer with a score uses up to two units where the learners do not agree. "
                if mechanism.with_scores
                else "Unstable answers are what must be limited; stable ones spend nothing of it. "
            )
            + f"When these are used up, {ENDS[mechanism.on_cutoff.value]}.",
            "unstable <= T; epsilon of the answers is spent on telling when T is reached",
        )
    yield Explained(
        "neighbours",
        "one record replaced",
        "What is protected is one row of the source. A person with several rows is protected row "
        "by row: bring the source down to one row a person.",
        "S and S' have n rows and differ in one",
    )


def _figures(release: Release) -> Iterator[Explained]:
    if release.mechanism.cutoff is None:
        return
    yield Explained(
        "band of the unstable rate",
        "95 %",
        "Where the true rate lies, judging by the answers so far, if answers go on being alike.",
        "Clopper and Pearson: Beta quantiles at 2.5 % and 97.5 %",
    )
    yield Explained(
        "forecast",
        "90 %",
        "When the limit or the cutoff is reached if clients go on asking as in the last five "
        "minutes and as many answers are unstable as so far.",
        "answers until hit T: binomial tails at the ends of the band",
    )
    if release.mechanism.cutoff >= release.mechanism.answer_limit:
        return  # they cannot run out first
    yield Explained(
        "drain alarm",
        "1 false alarm in 100 releases",
        "Sounds when unstable answers come faster than T in m answers, and by more than chance "
        "explains.",
        "fortune = mean over bets f of the product of 1 + f (units m / T - 1); alarm at 100",
    )


def _grown(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < math.log(1e300) else math.inf


def _number(value: float) -> str:
    """Write a number with three digits that count; one beyond a million by its power of ten."""
    if value and not 1e-4 <= abs(value) < 1e6:  # noqa: PLR2004 -- where plain digits are hard to read
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{float(digits):g}e{int(power)}"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 -- no digit is lost
