"""A planning request: the public values of a configuration, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from app.errors import invariant
from app.privacy.answering_rows import AnswersAsked
from app.privacy.budget.account import account_of
from app.privacy.budget.composition import Mechanism
from app.privacy.mechanisms import serving_row

if TYPE_CHECKING:
    from app.privacy.answering_rows import AnsweringRow
    from app.privacy.budget.account import Account
    from app.privacy.budget.composition import Charge
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.paper.paper_pipeline import PaperTargets
    from app.release.statistics.statistics_table import StatisticsForecast
    from app.release.terms.privacy_unit import Unit

Sequel = Literal["classifier", "halt", "student"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The public configuration of a release to be planned.

    Attributes:
        calibration: which constants the answers use.
        mechanism: what answers.
        row_count: n, which is public; None where it is not known yet.
        unit: what n counts, rows or persons.
        epsilon: of the whole release, above 0.
        delta: of the whole release, in (0, 1).
        charges: what each mechanism with a share is charged.
        budget: what relabelling and answers may cost on the sample; None where
            answers have no share.
        targets: accuracy alpha, failure beta and m, fresh answers of the ensemble.
        cutoff: T, unstable answers until the ensemble ends, at least 1; calibration
            paper has its own.
        ensemble_size: k; None where it is left to the calibration's rule.
        class_count: the number L of labels, at least 2.
        hypothesis_count: number of hypotheses that learners search.
        relabel_hypothesis_count: number among which the relabelling one is drawn, or a
            public bound of it.
        classifier_hypothesis_count: number among which the classifier is drawn; None where it
            is drawn from no class.
        dimension: VC dimension of the class that relabels, or a bound of it.
        classifier_dimension: of the classifier's class; where it is drawn from none, of that
            of the learners.
        universal: whether the classifier follows query m, so that m is m_o.
        with_student: whether a student of the answers follows them.
        with_scores: whether answers are scores, whose bins are tested in place of labels.
        with_estimator: whether learners are of another kind than the hypotheses, which
            cannot be listed.
        after: what follows query m.
        on_cutoff: what follows unstable answer T.
        learner: name of what learns the classifier; None where that has no share.
        learner_asked: the same as configured, ``auto`` among others, by which an account has it.
        learner_at_once: name of what ``auto`` would take with all of epsilon.
        classifier_words: why ``auto`` takes that learner, and which labels it may not see.
        rare_share: share of n that a label must have, lest the classifier is given it never;
            None without a classifier, or n.
        cell_count: public cells that learners vote by; None where they do not.
        counts_decisions: whether each of them is decided once, and two decisions are paid for.
        statistics: tables on few public points and on many; none without a share, or n.
        is_growing: whether further rows are added, so that tables have the first rule's order.
        joint_rows: names of the mechanisms whose new releases have one account with these
            shares; None where those of this request say it of each.

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
    def row(self) -> AnsweringRow:
        """The functions of the answering mechanism, as an entry of the table of mechanisms."""
        return self._row_named(self.mechanism, self.calibration)

    def may_serve(self, row: AnsweringRow) -> bool:
        """Return whether a mechanism could answer queries if the configuration named it."""
        return self._row_named(row.mechanism, row.calibration or self.calibration) is row

    def _row_named(self, mechanism: str, calibration: str) -> AnsweringRow:
        return serving_row(
            mechanism,
            calibration,
            class_count=self.class_count,
            counts_decisions=self.counts_decisions,
        )

    @property
    def by_cell(self) -> bool:
        """Whether learners vote by public cells, which need only one row each."""
        return self.cell_count is not None

    @property
    def never_ends(self) -> bool:
        """Whether the ensemble never ends, since there are fewer cells than allowed answers."""
        cells = self.cell_count
        return (
            self.counts_decisions and self.row.counts_decisions and self.query_count > (cells or 0)
        )

    @property
    def asked(self) -> AnswersAsked:
        """The public numbers of this request from which a mechanism is calibrated."""
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

    def asked_of(self, row: AnsweringRow, epsilon: Fraction) -> tuple[AnswersAsked, Fraction]:
        """Return the public numbers and the epsilon with which another mechanism would answer.

        Args:
            row: the mechanism's.
            epsilon: the answers' in this request, with the draws that share their account.

        Returns:
            Its public numbers, and the epsilon of its answers with what shares their account.

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
        """The joint privacy budget of the answers and the drawn rules, by Renyi divergence."""
        return account_of(self.charges, learner=self.learner_asked)

    @property
    def query_count(self) -> int:
        """The planned number of new answers of the ensemble, m."""
        return self.targets.query_count

    @property
    def alpha(self) -> float:
        """The accuracy target of the plan, alpha."""
        return self.targets.alpha

    @property
    def beta(self) -> float:
        """The failure probability that the plan permits, beta."""
        return self.targets.beta

    @property
    def sampled_row_count(self) -> int | None:
        """The number of rows, sampled or all, that answers use; None if unknown or unused."""
        if self.row_count is None or self.budget is None:
            return None
        return self.budget.sampled_row_count(self.row_count)

    def charge(self, mechanism: Mechanism) -> Charge | None:
        """Return a mechanism's share of the privacy budget; None if it has no share."""
        return next((charge for charge in self.charges if charge.mechanism == mechanism), None)
