"""``[release]``, ``[privacy]``, ``[answers]``: the privacy budget, and how answers spend it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from app.privacy.mechanisms import MECHANISMS
from app.settings.field_types import EnsembleSize, Exact, Name, Number, OneOf, Section, Unit, Whole

Mechanism = Literal["relabel", "answers", "classifier", "statistics"]
DeltaMechanism = Literal["answers", "classifier", "statistics"]
Successor = Literal["classifier", "halt", "student"]
Share = Annotated[Exact, Field(ge=0, le=1)]


class ReleaseSettings(Section):
    """``[release]``: the name of one data set with its configuration and its ledger."""

    name: Annotated[
        Name,
        Field(
            max_length=200,
            pattern=r"^[^/]*$",
            description="Name of the release, and of its model in the Open Inference Protocol V2; "
            "without a slash.",
        ),
    ]


class SharesSettings(Section):
    """``[privacy.shares]``: the fraction of epsilon for each mechanism; 0 switches it off."""

    relabel: Annotated[
        Share,
        Unit("fraction of epsilon"),
        Field(description="Share of epsilon for the draw of the rule that relabels the rows."),
    ] = Decimal("0.1")
    answers: Annotated[
        Share,
        Unit("fraction of epsilon"),
        Field(description="Share of epsilon for the ensemble's answers."),
    ] = Decimal("0.6")
    classifier: Annotated[
        Share,
        Unit("fraction of epsilon"),
        Field(description="Share of epsilon for the published classifier."),
    ] = Decimal("0.3")
    statistics: Annotated[
        Share,
        Unit("fraction of epsilon"),
        Field(description="Share of epsilon for the statistics table."),
    ] = Decimal(0)


class DeltaSharesSettings(Section):
    """``[privacy.delta_shares]``: the fraction of delta that each mechanism gets."""

    answers: Annotated[
        Share | None,
        Unit("fraction of delta"),
        Field(description="Share of delta for the ensemble's answers; by default the rest."),
    ] = None
    classifier: Annotated[
        Share | None,
        Unit("fraction of delta"),
        Field(
            description="Share of delta for a classifier whose `learner` uses delta, and for no "
            "other; by default 0.1, or if answers have no share of epsilon, everything "
            "except the share of statistics."
        ),
    ] = None
    statistics: Annotated[
        Share | None,
        Unit("fraction of delta"),
        Field(
            description="Share of delta for the statistics table; by default 0.1 if statistics have"
            " a share of epsilon."
        ),
    ] = None


class ComposedSettings(Section):
    """``[privacy.composed]``: epsilon and delta of all releases in one database together."""

    epsilon: Annotated[
        Exact | None,
        Unit("nats"),
        Field(
            gt=0,
            le=1_000_000,
            description="Epsilon of all releases together; required if the database has "
            "another release.",
        ),
    ] = None
    delta: Annotated[
        Exact | None,
        Unit("probability"),
        Field(
            gt=0,
            lt=1,
            description="Delta of all releases together; required if the database has another "
            "release.",
        ),
    ] = None


class TableSettings(Section):
    """``[privacy.table]``: the budget of the noise table, if generations have different budgets.

    The noise table has, for each distance (number of votes that may change without changing the
    label with the most votes), the probability of an unstable answer. All generations use one noise
    table, which is computed for the budget of this section.
    """

    epsilon: Annotated[
        Exact,
        Unit("nats"),
        Field(
            gt=0,
            le=1000,
            description="Whole epsilon for which the table of probabilities is computed; at most "
            "`privacy.epsilon`.",
        ),
    ]
    hits_max: Annotated[
        Whole,
        Unit("unstable answers"),
        Field(
            ge=1,
            le=1_000_000,
            description="Largest number of unstable answers that a generation may pay for.",
        ),
    ]


class PrivacySettings(Section):
    """``[privacy]``: the budget that the release promises, and how it is divided."""

    epsilon: Annotated[
        Exact, Unit("nats"), Field(gt=0, le=1000, description="The release's whole epsilon.")
    ] = Decimal(1)
    delta: Annotated[
        Exact, Unit("probability"), Field(gt=0, lt=1, description="The release's whole delta.")
    ] = Decimal("1e-6")
    calibration: Annotated[
        str,
        OneOf(
            lambda: list(
                dict.fromkeys(row.calibration for row in MECHANISMS.values() if row.calibration)
            )
        ),
        Field(
            description="The rule that sets the noise of the answers: a table of probabilities "
            "(`profile`, Theorem A), the sparse vector technique (`svt`), the constants"
            " that the paper prints (`paper`), or a table with a certificate "
            "(`certified`, Theorem C)."
        ),
    ] = "profile"
    sampling: Annotated[
        Exact,
        Unit("fraction of the rows"),
        Field(
            gt=0,
            le=1,
            description="Fraction of the rows that are drawn at random for the models; on a smaller"
            " sample the mechanisms may use a larger epsilon at the same privacy cost.",
        ),
    ] = Decimal(1)
    accounting: Annotated[
        Literal["joint", "sum"] | None,
        Field(
            description="Whether relabelling, answers and classifier have one joint budget, with "
            "which stable answers need fewer votes (`joint`), or each stays within its "
            "own share (`sum`). If unset, an opened release keeps its rule, and a new "
            "release with epsilon 50 or less has a joint budget if that is possible and"
            " statistics have no share (docs/guarantee.md has all conditions)."
        ),
    ] = None
    shares: SharesSettings = SharesSettings()
    delta_shares: DeltaSharesSettings = DeltaSharesSettings()
    composed: ComposedSettings = ComposedSettings()
    table: TableSettings | None = None

    def epsilon_of(self, mechanism: Mechanism) -> Fraction:
        """Return the exact share of epsilon that a mechanism may use."""
        share: Decimal = getattr(self.shares, mechanism)
        return Fraction(self.epsilon) * Fraction(share)

    def delta_share(
        self, mechanism: DeltaMechanism, *, classifier_uses_delta: bool = False
    ) -> Fraction:
        """Return the fraction of delta for a mechanism: as configured, or the default.

        Args:
            mechanism: the mechanism that gets the fraction.
            classifier_uses_delta: whether the learner of the classifier needs a fraction of delta.

        """
        given: Decimal | None = getattr(self.delta_shares, mechanism)
        if given is not None:
            return Fraction(given)
        statistics = Fraction(1, 10) if self.shares.statistics > 0 else Fraction(0)
        if mechanism == "statistics":
            return statistics
        if not classifier_uses_delta:
            return 1 - statistics if mechanism == "answers" else Fraction(0)
        classifier = Fraction(1, 10) if self.shares.answers > 0 else 1 - statistics
        return classifier if mechanism == "classifier" else 1 - statistics - classifier


class AnswersSettings(Section):
    """``[answers]``: how the models answer, how many queries, and what follows the last answer."""

    mechanism: Annotated[
        str,
        OneOf(lambda: list(dict.fromkeys(row.mechanism for row in MECHANISMS.values()))),
        Field(
            description="How queries are answered: with a label only if the votes pass the "
            "stability test (`stability`), or with a label for every query "
            "(`noisy-vote`). With two labels, a noisy vote is decided at random by a "
            "table of probabilities; with more labels, by the largest vote count after "
            "Gaussian noise."
        ),
    ] = "stability"
    queries: Annotated[
        Whole,
        Unit("answers"),
        Field(
            ge=1,
            le=10**12,
            description="Maximum number of new answers of the models, called m.",
        ),
    ] = 1000
    cutoff: Annotated[
        Whole,
        Unit("unstable answers"),
        Field(
            ge=1,
            le=10**9,
            description="Number of unstable answers at which the models stop, called T.",
        ),
    ] = 5
    ensemble: Annotated[
        EnsembleSize,
        Unit("learners"),
        Field(
            description='Number of chunks, each with one model, called k; "auto" computes it from '
            "the number of rows and this configuration."
        ),
    ] = "auto"
    unstable: Annotated[
        Literal["abstain", "coin"],
        Field(
            description="Label of an unstable answer: null (`abstain`), or a label drawn at random "
            "(`coin`)."
        ),
    ] = "abstain"
    after: Annotated[
        Successor,
        Field(
            description="What follows the m-th answer of the models, the last one that `queries` "
            "allows."
        ),
    ] = "classifier"
    on_cutoff: Annotated[
        Successor,
        Field(
            description="What follows the T-th unstable answer, the last one that `cutoff` allows."
        ),
    ] = "halt"
    output: Annotated[
        Literal["label", "score"],
        Field(
            description="Kind of answer: a label, or the bin that contains the probability of "
            "the second of two classes, with a label."
        ),
    ] = "label"
    precision: Annotated[
        Whole,
        Unit("bins"),
        Field(
            ge=2,
            le=1000,
            description="Number of equal bins of a score; a query may set another number.",
        ),
    ] = 10
    alpha: Annotated[
        Number,
        Unit("error rate"),
        Field(
            gt=0, lt=1, description="Error rate to reach, for planning and for calibration `paper`."
        ),
    ] = 0.1
    beta: Annotated[
        Number,
        Unit("probability"),
        Field(
            gt=0,
            lt=1,
            description="Probability with which `alpha` may be missed, for planning and for "
            "calibration `paper`.",
        ),
    ] = 0.05
    query_seconds_max: Annotated[
        Number,
        Unit("seconds"),
        Field(
            gt=0,
            le=3600,
            description="A release does not open if one answer would take longer, as measured "
            "before the opening on models of made-up rows, with padding.",
        ),
    ] = 2.0
    reply_padding_milliseconds: Annotated[
        Whole | None,
        Unit("milliseconds"),
        Field(
            ge=0,
            le=60_000,
            description="The time in which the models evaluate a query is padded to a whole "
            "multiple of this; if unset, built-in rules and packed estimators are not "
            "padded, and other estimators are, with half a millisecond for each model.",
        ),
    ] = None

    @property
    def sequels(self) -> dict[str, Successor]:
        """Return what follows the models' last answer, as the settings name it.

        The keys are ``after``, for the last answer that ``queries`` allows, and ``on_cutoff``, for
        the last unstable answer that ``cutoff`` allows.
        """
        return {"after": self.after, "on_cutoff": self.on_cutoff}
