"""The public parameters of a release in plain words, each with its formula.

The texts are for people who operate a release and have not read the research papers that
``docs/algorithms.md`` names. All values are public, for example the settings and the parameters of
the noise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from app.learning.registry import class_registration
from app.ledger.entries.fold import JOINT
from app.privacy.budget.account import ONE_ACCOUNT
from app.privacy.budget.composition import Mechanism
from app.privacy.mechanism_registration import Explained, in_short
from app.privacy.stability.cell_table import DECISIONS_MOVED
from app.release.classifier.learner_table import chosen_learner
from app.release.terms.answer_terms import answering_registration
from app.release.terms.privacy_unit import IN_WORDS, opened_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.release.release import Release
    from app.release.terms.privacy_unit import Unit
    from app.settings.settings import Settings

PERSON: Final = "P[seen | with this record] <= e^epsilon * P[seen | with another] + delta"
ENDS: Final = {
    "halt": "new queries are refused, and recorded ones get their answers again",
    "classifier": "a classifier is published, which answers without limit and costs nothing more",
    "student": "a student of the answers is published, which answers without limit, free",
}
SHARES: Final = {
    Mechanism.RELABEL: (
        "One noisy rule relabels the records before any learner sees them.",
        "a rule is drawn with weight exp(-epsilon_share * errors / 2)",
    ),
    Mechanism.ANSWERS: (
        "Pays for every answer of the ensemble together, whatever is asked and how often.",
        "charged once, whole: T bounds what all answers can tell",
    ),
    Mechanism.STATISTICS: (
        "Pays for the table of means of hypotheses, drawn once.",
        "private multiplicative weights over the cells of a public grid",
    ),
}
PART: Final = "Pays for each generation's part in the published classifier, on its own records."
AUTO_FORMULA: Final = "a public function of n, epsilon and the kinds of features"
ACCOUNT_FORMULA: Final = (
    "T ln R + (alpha - 1) * the sum of min(epsilon_share, alpha epsilon_share^2 / 8) <= what "
    "epsilon and delta allow at order alpha"
)


def explained(release: Release) -> list[Explained]:
    """Return every parameter of ``release`` with its explanation, in reading order."""
    return [*_promise(release), *_ensemble(release), *_ending(release), *_figures(release)]


def _promise(release: Release) -> Iterator[Explained]:
    configuration = release.configuration
    epsilon, delta = float(configuration.epsilon), float(configuration.delta)
    yield Explained(
        "epsilon (ε)",
        in_short(epsilon),
        "How much one person's record can change what anyone sees, over the whole life of the "
        f"release: apart from delta, nothing becomes more than {in_short(_grown(epsilon))} times "
        "as likely. Smaller is more private.",
        PERSON,
    )
    yield Explained(
        "delta (δ)",
        in_short(delta),
        "A small probability that the promise of epsilon leaves out. Keep it far below one over "
        "the number of records.",
        PERSON,
    )
    opened = release.state.release
    row_count = None if opened is None else opened_count(opened)
    shares = shares_in_words(configuration.settings, row_count, opened)
    for mechanism, share in configuration.charges.items():
        meaning, formula = shares[mechanism]
        value = f"epsilon {in_short(float(share.epsilon))}, delta {in_short(float(share.delta))}"
        yield Explained(f"share of {mechanism.value}", value, meaning, formula)
    if configuration.settings.accounting == JOINT:
        yield Explained(
            "accounting", "one account", f"{ONE_ACCOUNT.capitalize()}.", ACCOUNT_FORMULA
        )
    chosen = chosen_learner(configuration.settings, row_count=row_count, opened=opened)
    if chosen.reason and configuration.has(Mechanism.CLASSIFIER):
        name = chosen.row.learner.name
        yield Explained("learner of the classifier", name, f"{chosen.reason}.", AUTO_FORMULA)


def shares_in_words(
    settings: Settings, row_count: int | None, opened: ReleaseOpened | None
) -> dict[Mechanism, tuple[str, str]]:
    """Return the purpose of each share of the budget, with its mechanism's formula.

    Args:
        settings: the whole configuration.
        row_count: the public number n of rows; None if it is unknown.
        opened: the release's first ledger entry; None before the release is opened.

    """
    learner = chosen_learner(settings, row_count=row_count, opened=opened).row.learner
    drawn = class_registration(settings.published.kind).drawn
    meaning = learner.meaning if settings.generations is None else PART
    classifier = (meaning, learner.formula.format(drawn=drawn))
    return {**SHARES, Mechanism.CLASSIFIER: classifier}


def _ensemble(release: Release) -> Iterator[Explained]:
    size = release.ensemble_size
    if size:
        is_redrawn = answering_registration(release.configuration.settings).is_printed
        words = IN_WORDS[release.configuration.settings.data.unit]
        meaning, formula = words.redrawn if is_redrawn else words.cut
        yield Explained("ensemble (k)", f"{size:,} learners", meaning, formula)
    answering, row = release.mechanism.answering, release.mechanism.row
    if answering is not None and row is not None:
        yield row.explain(answering)
    coin = release.mechanism.unstable_gets_coin
    if row is not None and row.test is not None:
        yield Explained(
            "unstable answers",
            "a random label" if coin else "no label",
            "What a client gets where the learners do not agree far enough: "
            + ("a label by lot, marked unstable." if coin else "no label, marked unstable.")
            + " It tells nothing of the votes.",
            "unstable with probability p(d), d = max(0, ceil(lead / 2) - 1)",
        )


def _ending(release: Release) -> Iterator[Explained]:
    mechanism = release.mechanism
    grows = release.configuration.settings.generations is not None
    if mechanism.answer_limit and not grows:
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
            + (
                "Each generation has as many of its own, and retires when they are used up."
                if grows
                else f"When these are used up, {ENDS[mechanism.on_cutoff.value]}."
            ),
            "unstable <= T; epsilon of the answers is spent on telling when T is reached",
        )
    if mechanism.row is not None and mechanism.row.counts_decisions:
        yield Explained(
            "decisions that a record moves",
            f"{DECISIONS_MOVED} decisions",
            "Each public cell is decided once, and its answer is given to every query in it. One "
            "record can change the cell that it leaves and the cell that it comes to, so that any "
            "number of cells may be decided, and none of them ends the ensemble.",
            "epsilon of the answers is spent on two decisions, whatever is asked",
        )
    yield from _neighbours(release.configuration.settings.data.unit)


def _neighbours(unit: Unit) -> Iterator[Explained]:
    words = IN_WORDS[unit]
    if unit == "row":
        value = "one record replaced"
        meaning = (
            "What is protected is one row of the source. A person with several rows is protected "
            "row by row, unless data.person names whose each row is."
        )
    else:
        value, meaning = "all records of one person replaced", words.protected
    yield Explained("neighbours", value, meaning, words.difference)


def _figures(release: Release) -> Iterator[Explained]:
    if release.mechanism.cutoff is None:
        return
    yield Explained(
        "band of the unstable rate",
        "95 %",
        "Where the true rate lies, judging by the answers so far, if answers go on being alike.",
        "Clopper and Pearson: Beta quantiles at 2.5 % and 97.5 %",
    )
    if release.configuration.settings.generations is not None:
        return  # each brings unstable answers of its own, so that no end is foretold
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
