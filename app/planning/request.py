"""A planning request: the public values of a configuration, and nothing else.

``docs/algorithms.md`` names the research papers whose theorems use some of these values. A *drawn
rule* is a rule that the release draws at random, to relabel the rows or as the published
classifier; new releases have one *joint budget* for the answers and the drawn rules, whose privacy
losses are then bounded together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from app.errors import invariant
from app.privacy.budget.account import account_of
from app.privacy.budget.composition import Mechanism
from app.privacy.mechanism_registration import AnswersAsked
from app.privacy.mechanisms import serving_row

if TYPE_CHECKING:
    from app.privacy.budget.account import Account
    from app.privacy.budget.composition import Charge
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.mechanism_registration import MechanismRegistration
    from app.privacy.paper.paper_pipeline import PaperTargets
    from app.release.statistics.statistics_table import StatisticsForecast
    from app.release.terms.privacy_unit import Unit

Sequel = Literal["classifier", "halt", "student"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The public configuration of a release to be planned.

    Attributes:
        calibration: the rule that sets the noise of the answers.
        mechanism: the name of the answering mechanism.
        row_count: the public number n of rows or persons; None if it is not known yet.
        unit: the unit of privacy, which n counts: row or person.
        epsilon: the epsilon of the whole release, above 0.
        delta: the delta of the whole release, between 0 and 1.
        charges: the epsilon and delta that are charged for relabelling, answers, classifier and
            statistics, for each of these that has a share of epsilon.
        budget: the epsilon and delta of answers and of relabelling (replacing the rows' labels by
            those of a drawn rule), with respect to replacing one of the rows that are used: all
            rows, or a random sample; None if the release gives no answers by vote.
        targets: the number m of new answers of the ensemble and, for the papers' theorems, the
            error rate alpha at which they aim and the probability beta with which they may fail.
        cutoff: the cutoff T, the number of unstable answers until the ensemble stops, at least 1;
            calibration ``paper`` has its own cutoff.
        ensemble_size: the number k of models; None if it follows from the noise parameters or the
            number of rows.
        class_count: the number L of labels, at least 2.
        hypothesis_count: the number of rules among which each model is chosen.
        relabel_hypothesis_count: the number of rules from which the relabelling rule is drawn, or a
            public upper bound of this number.
        classifier_hypothesis_count: the number of rules from which the classifier is drawn; None if
            it is not drawn from a list of rules.
        dimension: the VC dimension of the class of relabelling rules, or an upper bound.
        classifier_dimension: the VC dimension of the classifier's class of rules or, if the
            classifier is not drawn from a list of rules, of the models' class.
        universal: whether a published classifier answers new queries after answer m; m is then the
            number m_o in Algorithm 4 of Nandi and Bassily (``docs/algorithms.md``).
        with_student: whether a classifier trained on the answers (a student) answers after them.
        with_scores: whether answers are scores, so that the votes are counted by score bin and not
            by label.
        with_estimator: whether the models are of another kind than the class of rules, so that the
            possible models cannot be listed.
        after: what happens after answer m.
        on_cutoff: what happens after unstable answer T.
        learner: the name of the method that learns the classifier; None if the classifier has no
            share of epsilon.
        learner_asked: the configured name of this method, which may be ``auto``; the joint budget
            is computed with it.
        learner_at_once: the name of the method that ``auto`` would choose with all of epsilon.
        classifier_words: sentences on why ``auto`` chooses the method in ``learner``, and which
            labels the classifier may never give.
        rare_share: the classifier may never give a label that fewer than this fraction of the rows
            have; None without a classifier or without n.
        cell_count: the number of public cells that the models label; None for models without cells.
        counts_decisions: whether each cell is answered only once, so that the noise is set for the
            two answers that one record can change.
        statistics: forecasts of the accuracy of the statistics table (noisy answers to counting
            queries about the rows) on few and on many public points; empty without a share of
            epsilon for statistics, or without n.
        is_growing: whether batches of rows are added to the release after it is opened.
        joint_rows: the names of the answering mechanisms with which a new release has one joint
            budget for answers and drawn rules; None if all mechanisms are to be treated like the
            configured one.

    """

    calibration: str
    mechanism: str
    row_count: int | None
    epsilon: Fraction
    delta: Fraction
    charges: tuple[Charge, ...]
    budget: PipelineBudget | None
    targets: PaperTargets
    cutoff: int
    ensemble_size: int | None
    class_count: int
    hypothesis_count: int
    relabel_hypothesis_count: int
    classifier_hypothesis_count: int | None
    dimension: int
    classifier_dimension: int
    universal: bool
    with_student: bool = False
    with_scores: bool = False
    with_estimator: bool = False
    after: Sequel = "classifier"
    on_cutoff: Sequel = "halt"
    learner: str | None = None
    learner_asked: str | None = None
    learner_at_once: str | None = None
    classifier_words: tuple[str, ...] = ()
    rare_share: float | None = None
    cell_count: int | None = None
    counts_decisions: bool = False
    unit: Unit = "row"
    statistics: tuple[StatisticsForecast, ...] = ()
    is_growing: bool = False
    joint_rows: frozenset[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what the settings never let through."""
        invariant(self.row_count is None or self.row_count >= 1, "n is at least one")
        invariant(self.ensemble_size is None or self.ensemble_size >= 1, "k is at least one")
        invariant(self.query_count >= 1 <= self.cutoff, "m and T are at least one")
        invariant(0 < self.alpha < 1 and 0 < self.beta < 1, "alpha and beta are probabilities")
        counts = (
            self.hypothesis_count,
            self.relabel_hypothesis_count,
            self.classifier_hypothesis_count or 1,
        )
        invariant(min(counts) >= 1, "a hypothesis class is not empty")
        invariant(min(self.dimension, self.classifier_dimension) >= 0, "dimensions are counts")

    @property
    def row(self) -> MechanismRegistration:
        """The functions of the answering mechanism, as an entry of the table of mechanisms."""
        return self._row_named(self.mechanism, self.calibration)

    def may_serve(self, row: MechanismRegistration) -> bool:
        """Return whether a mechanism could answer queries if the configuration named it."""
        return self._row_named(row.mechanism, row.calibration or self.calibration) is row

    def _row_named(self, mechanism: str, calibration: str) -> MechanismRegistration:
        return serving_row(
            mechanism,
            calibration,
            class_count=self.class_count,
            counts_decisions=self.counts_decisions,
        )

    @property
    def by_cell(self) -> bool:
        """Whether models label public cells, so that a model needs only one row."""
        return self.cell_count is not None

    @property
    def never_ends(self) -> bool:
        """Whether the ensemble never stops.

        If each cell is answered only once, and there are fewer cells than the limit m of answers,
        this limit is never reached.
        """
        cells = self.cell_count
        return (
            self.counts_decisions and self.row.counts_decisions and self.query_count > (cells or 0)
        )

    @property
    def asked(self) -> AnswersAsked:
        """The public numbers of this request from which the noise parameters are computed."""
        return AnswersAsked(
            relabel=self.charge(Mechanism.RELABEL),
            answers=self.charge(Mechanism.ANSWERS),
            targets=self.targets,
            sampling_rate=Fraction(1) if self.budget is None else self.budget.sampling_rate,
            private_grid=self.budget is not None and self.budget.relabel_is_private,
            class_count=self.class_count,
            cutoff=self.cutoff,
            account=None if self.budget is None or self.budget.account is None else self.account,
            is_by_cutoff=not self.is_growing,
        )

    def asked_of(
        self, row: MechanismRegistration, epsilon: Fraction
    ) -> tuple[AnswersAsked, Fraction]:
        """Return the parameters, and the epsilon, with which another mechanism would answer.

        Args:
            row: the entry of the other mechanism in the table of answering mechanisms.
            epsilon: the epsilon of the answers in this request, and of the drawn rules that have
                one joint budget with the answers.

        Returns:
            The parameters of the other mechanism, and the epsilon of its answers and of the drawn
            rules that have one joint budget with them.

        """
        asked, answers = self.asked, self.charge(Mechanism.ANSWERS)
        if self.joint_rows is None or answers is None or self.row.is_printed:
            return asked, asked.epsilon_of(row, epsilon)
        is_joint = row.name in self.joint_rows
        if is_joint == (asked.account is not None):
            return asked, asked.epsilon_of(row, epsilon)
        if is_joint:
            return replace(asked, account=self.account), self.account.epsilon
        return replace(asked, account=None), answers.epsilon

    @property
    def account(self) -> Account:
        """The joint privacy budget of the answers and the drawn rules.

        Their costs are computed as Renyi divergences, which add up.
        """
        return account_of(self.charges, learner=self.learner_asked)

    @property
    def query_count(self) -> int:
        """The planned number m of new answers of the ensemble."""
        return self.targets.query_count

    @property
    def alpha(self) -> float:
        """The error rate alpha at which the papers' theorems aim, a number between 0 and 1."""
        return self.targets.alpha

    @property
    def beta(self) -> float:
        """The probability beta with which the papers' accuracy theorems are allowed to fail."""
        return self.targets.beta

    @property
    def sampled_row_count(self) -> int | None:
        """The number of rows that are divided into chunks: all rows, or a random sample.

        It is None if the number of all rows is unknown, or if no models answer.
        """
        if self.row_count is None or self.budget is None:
            return None
        return self.budget.sampled_row_count(self.row_count)

    def charge(self, mechanism: Mechanism) -> Charge | None:
        """Return the epsilon and delta charged for relabelling, answers, classifier or statistics.

        The result is None if this mechanism has no share of epsilon.
        """
        return next((charge for charge in self.charges if charge.mechanism == mechanism), None)
