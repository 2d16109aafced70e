"""The form of an answering mechanism's entry in the table :mod:`app.privacy.mechanisms`.

Each mechanism defines its entry in ``answering_registration.py`` in its own folder. With the
functions in this entry a release finds the mechanism's noise, checks it, answers queries and
explains its parameters. The noise is kept in the private state of the release, which never leaves
the server. Two other tables have entries under the same name:
``app.planning.mechanisms.planning_table`` for planning, and ``app.auditing.bounds_by_mechanism``
for auditing.

Relabelling gives each private row the label that a privately drawn rule predicts, before the models
are trained.

A query's distance is the number of votes that may change without changing the leading label. Some
mechanisms have a stability test, which makes an answer unstable at random, more likely at a small
distance: by a stability table, which has the probability for each distance, or by comparing the
distance with a noisy threshold. A stability table is short if unstable answers are rare from a
small distance on. Its delta is split: one part covers the unstable answers, the other the release
of a label that differs between two neighbouring data sets.

The random draws of a relabelling rule and of a classifier may share a privacy account with the
answers, in which the cost of answers and draws is computed together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from app.errors import ConfigurationError, InvariantError
from app.privacy.budget.account import left_for_answers
from app.privacy.budget.sampled_budget import PipelineBudget, joint_budget, pipeline_budget

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.privacy.budget.account import Account, Draw
    from app.privacy.budget.composition import Charge
    from app.privacy.generations.accounts import ProfileAccount
    from app.privacy.paper.paper_pipeline import PaperTargets
    from app.privacy.voting.votes import Tally

RULE_KEY: Final = "answers.rule"
"""Parameter of the first entry that says by which of its rules a mechanism answers.

Ledgers of versions that knew one rule do not have it.
"""

ORDER_KEY: Final = "answers.order"
"""Parameter of the first entry that says how Theorem A's table has its order and split of delta.

Absent where the table shares an account, and in ledgers of versions that knew one rule.
"""
BY_CUTOFF: Final = "by cutoff"
"""Its text where both are those for which the table is shortest at the cutoff T."""

Plain: TypeAlias = Mapping[str, str | list[str]]
OwnT = TypeVar("OwnT")


class Answering(Protocol):
    """The public parameters of a mechanism that answers queries."""

    @property
    def cutoff(self) -> int | None:
        """The number T of unstable answers after which the models stop; None without limit."""
        ...


class Calibration(Protocol):
    """The noise parameters of an answering mechanism, with the budget that they keep.

    The module of each implementation states and proves the privacy claim. Its function ``check``
    decides from the stored parameters whether the claim holds, with every rounding on the safe
    side.
    """

    @property
    def epsilon(self) -> Fraction:
        """The mechanism's share of epsilon for answers."""
        ...

    @property
    def delta(self) -> Fraction:
        """The mechanism's share of delta for answers."""
        ...

    @property
    def cutoff(self) -> int | None:
        """The number T of unstable answers after which the models stop; None without limit."""
        ...

    def to_plain(self) -> Plain:
        """Return the parameters as strings and lists of strings, without loss of precision."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersAsked:
    """The public numbers of a configuration on which the noise of its answers depends.

    Attributes:
        relabel: the share of epsilon and delta charged for relabelling; None if rows keep their
            labels.
        answers: the share of epsilon and delta charged for answers; None if answers have no share.
        targets: the accuracy target alpha, the failure probability beta, and the number m of new
            answers that the models give.
        sampling_rate: the fraction of the rows on which the models are trained.
        private_grid: whether relabelling chooses among the labellings that the hypothesis class
            allows on the private rows themselves, and not among a public list of hypotheses.
        class_count: the number L of labels.
        cutoff: the cutoff T, the number of unstable answers after which the models stop answering.
        account: the privacy account that the answers share with random draws; None if shares of
            epsilon are added up.
        hits_max: the largest number of unstable answers for which any generation may pay; None for
            T.
        is_by_cutoff: whether the stability table uses the Renyi order and the split of delta that
            make it shortest at T, as the release's first ledger entry says. Always false for
            generations, which compute T from the table.

    """

    relabel: Charge | None
    answers: Charge | None
    targets: PaperTargets
    sampling_rate: Fraction
    private_grid: bool
    class_count: int
    cutoff: int
    account: Account | None = None
    hits_max: int | None = None
    is_by_cutoff: bool = True

    def draws_at(self, epsilon: Fraction) -> tuple[Draw, ...]:
        """Return the random draws that share the answers' privacy account, for a total epsilon.

        In a joint privacy account the cost of answers is computed together with that of the draws
        of a relabelling rule and of a classifier.
        """
        return () if self.account is None else self.account.draws_at(epsilon)

    def epsilon_of(self, row: MechanismRegistration, epsilon: Fraction) -> Fraction:
        """Return the part of ``epsilon`` for which the noise of the answers is computed.

        The draws of a relabelling rule and of a classifier may share the answers' privacy account.
        Their epsilons are then subtracted, except if the mechanism ``row`` computes its noise for
        answers and draws together.
        """
        draws = () if row.may_share_account else self.draws_at(epsilon)
        return left_for_answers(epsilon, draws)

    @property
    def answers_charge(self) -> Charge:
        """The answers' share of epsilon and delta; raises an error if they have none."""
        if self.answers is None:
            raise ConfigurationError("privacy.shares.answers", "is 0")
        return self.answers


@dataclass(frozen=True, slots=True)
class HitState:
    """The number of unstable answers so far (public), and the threshold's noise (secret)."""

    hit_count: int = 0
    private_threshold_noise: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class State:
    """The state of answering: public counts, and the threshold's noise, which is secret.

    Attributes:
        answered_count: the number of new answers that the models gave.
        unstable_count: the number of failed stability tests, which the cutoff limits: one for an
            unstable label, and 0 to 2 for an answer with scores.
        halted: whether the models may give no further new answer, whatever the counters say.
        private_threshold_noise: rho, the noise on the threshold of the sparse vector technique;
            None for other mechanisms.

    """

    answered_count: int = 0
    unstable_count: int = 0
    halted: bool = False
    private_threshold_noise: int | None = field(default=None, repr=False)

    @property
    def tested(self) -> HitState:
        """The state that the stability test needs: the number of hits and the threshold's noise."""
        return HitState(self.unstable_count, self.private_threshold_noise)

    def after(self, tested: HitState, *, answers: int = 1) -> State:
        """Return the state of the release's answering after a number of new answers.

        Args:
            tested: the number of all unstable answers so far, and the threshold's noise.
            answers: the number of new answers.

        """
        return State(
            self.answered_count + answers,
            tested.hit_count,
            private_threshold_noise=tested.private_threshold_noise,
        )


class Explained(NamedTuple):
    """A parameter of a release for display: its name, value, meaning and formula."""

    name: str
    value: str
    meaning: str
    formula: str


def shared_budget(asked: AnswersAsked) -> PipelineBudget | None:
    """Return the joint budget of relabelling and answers, divided between them.

    Raises:
        ConfigurationError: the share of relabelling is below ``2 ln L``, its least cost with L
            labels if the set of hypotheses depends on the private rows.

    """
    if asked.account is not None:
        return joint_budget(relabel=asked.relabel, answers=asked.answers, account=asked.account)
    return pipeline_budget(
        relabel=asked.relabel,
        answers=asked.answers,
        sampling_rate=asked.sampling_rate,
        private_grid=asked.private_grid,
        class_count=asked.class_count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismRegistration:
    """The functions of one answering mechanism, as an entry of the table of mechanisms.

    In the lines below, the calibration is the object with the mechanism's noise parameters.

    Attributes:
        mechanism: the mechanism's name in the setting ``answers.mechanism``.
        calibration: the mechanism's name in the setting ``privacy.calibration``; None if it has no
            name of its own there.
        entry: the name of this entry in tables, if another entry has the same mechanism; otherwise
            None.
        rule: the text about this entry in a release's first ledger entry, under :data:`RULE_KEY`;
            None if there is no such text.
        takes: whether the mechanism serves new releases with a given number of labels.
        theorem: the theorem that proves the privacy claim, and how the cost of answers adds up, in
            words.
        proof: the path of the file with the proof, from the root of the sources.
        parameters: the type of the mechanism's parameters.
        calibrations: the types of the mechanism's calibrations, the type for new releases first.
        piece: the name under which the calibration is kept in the private state.
        calibrate: returns the calibration for a budget.
        check: raises an error unless a calibration satisfies every condition of the privacy claim.
        read: returns a calibration from what its ``to_plain`` returned.
        is_of: returns whether a calibration was made for the numbers in the configuration: the
            limit of answers or of unstable answers, the number of labels, and the random draws that
            share the account, where the mechanism uses them.
        serve: returns the mechanism's parameters from a calibration and the number k of votes.
        size_wanted: returns the number k of models at which a query is stable if two thirds of them
            agree; it ignores the number of rows.
        unstable_alike: returns the probability that a query is unstable although all k votes agree.
        explain: returns the parameters in plain words.
        step: answers one query; the label is None if the answer is unstable.
        budget: returns the budget of relabelling and answers; None if answers have no share of
            epsilon.
        fits: returns whether parameters are for a given number of labels and of answers.
        start: draws the noise that a run needs before its first query.
        test: decides whether one query is stable, from its distance; None if the mechanism
            has no stability test, and so no scores.
        tests: decides several queries in order, up to the last allowed unstable answer; None if
            queries are decided one by one.
        keeps_threshold: whether the noise of a threshold is kept as secret state between answers.
        is_refreshed: whether a new noise of the threshold is drawn after each unstable answer.
        is_printed: whether the numbers of sampled rows, of models and of permitted unstable answers
            are those that a research paper prints.
        decides_cells: whether each public cell may be answered once, if the models vote by cells;
            every vector in the cell then gets this answer.
        counts_decisions: whether the mechanism serves releases that answer each public cell once,
            and pays for the answers that one record can change and not for unstable answers.
        may_share_account: whether the answers' cost is computed by Renyi divergence, so that random
            draws before and after the answers may share their privacy account.
        orders_by_cutoff: whether the Renyi order and the split of delta are chosen so that the
            stability table is shortest for the release's cutoff; only in new releases whose answers
            do not share their account.
        ends_before_classifier: whether the classifier must be drawn after the last answer if it
            shares the answers' account. Such an account covers only draws with delta 0, and is used
            only if the configuration asks for it.
        open_account: opens the account of a batch of rows that has its own budget; None if all
            batches share the release's budget.
        own_size: returns the number k of models that the mechanism prescribes; None if the rule of
            ``ensemble_size.py`` chooses k.
        refuse_size: raises an error if the sampled rows are too few for k chunks.

    """

    mechanism: str
    calibration: str | None = None
    entry: str | None = None
    rule: str | None = None
    takes: Callable[[int], bool] = lambda _: True
    theorem: str
    proof: str
    parameters: type[Answering]
    calibrations: tuple[type, ...]
    piece: str
    calibrate: Callable[..., Calibration]
    check: Callable[..., None]
    read: Callable[..., Calibration]
    is_of: Callable[..., bool] = lambda calibration, asked: calibration.cutoff == asked.cutoff
    serve: Callable[..., Answering]
    size_wanted: Callable[..., int]
    unstable_alike: Callable[..., float]
    explain: Callable[..., Explained]
    step: Callable[..., tuple[State, int | None]]
    budget: Callable[[AnswersAsked], PipelineBudget | None] = shared_budget
    fits: Callable[..., bool] = lambda *_: True
    start: Callable[..., HitState] = lambda *_: HitState()
    test: Callable[..., tuple[HitState, bool]] | None = None
    tests: Callable[..., tuple[HitState, NDArray[np.bool_]]] | None = None
    keeps_threshold: bool = False
    is_refreshed: Callable[..., bool] = lambda _: False
    is_printed: bool = False
    decides_cells: bool = False
    counts_decisions: bool = False
    may_share_account: bool = False
    orders_by_cutoff: bool = False
    ends_before_classifier: bool = False
    open_account: Callable[..., ProfileAccount] | None = None
    own_size: Callable[[AnswersAsked], int] | None = None
    refuse_size: Callable[[AnswersAsked, tuple[int, int, int]], None] = lambda *_: None

    @property
    def name(self) -> str:
        """The mechanism's name in all tables."""
        return self.entry or self.shown

    @property
    def shown(self) -> str:
        """The mechanism's name in settings and in output for people."""
        return self.calibration or self.mechanism


def own(value: object, kind: type[OwnT]) -> OwnT:
    """Return ``value`` after checking that it is an instance of ``kind``, a mechanism's class.

    Raises:
        InvariantError: the value belongs to another mechanism.

    """
    if not isinstance(value, kind):
        message = f"{kind.__module__} is handed its own {kind.__name__}"
        raise InvariantError(message)
    return value


def step_of(
    test: Callable[..., tuple[HitState, bool]],
) -> Callable[..., tuple[State, int | None]]:
    """Return a function that answers a query by its leading label if a stability test passes."""

    def step(
        parameters: Answering, state: State, private_value: Tally, noise: NoiseSource
    ) -> tuple[State, int | None]:
        tested, hit = test(parameters, state.tested, private_value.distance, noise)
        return state.after(tested), None if hit else private_value.plurality

    return step


def in_short(value: float) -> str:
    """Return a number as text with about three significant digits, in powers of ten if large."""
    if value and not 1e-4 <= abs(value) < 1e6:  # noqa: PLR2004 -- where plain digits are hard to read
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{float(digits):g}e{int(power)}"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 -- no digit is lost
