"""The form of an answering mechanism's entry in the table :mod:`app.privacy.mechanisms`.

A row lies in its mechanism's folder, in ``answering_row.py``: a release calibrates, checks,
serves and explains answers by it.  The rooms above hold rows of their own under its name:
planning in ``app.planning.mechanisms.planning_table``, auditing in ``app.auditing.mechanisms``.
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
        """The limit T of unstable answers; None if they are not limited."""
        ...


class Calibration(Protocol):
    """The calibrated parameters of a mechanism, with the budget that they keep.

    Its module says and proves the claim, and has a ``check`` that decides it again from
    what was persisted, every rounding going against us.
    """

    @property
    def epsilon(self) -> Fraction:
        """The share of epsilon that the answers may use."""
        ...

    @property
    def delta(self) -> Fraction:
        """The share of delta that the answers may use."""
        ...

    @property
    def cutoff(self) -> int | None:
        """The limit T of unstable answers; None if they are not limited."""
        ...

    def to_plain(self) -> Plain:
        """Return the parameters as strings and lists of strings, without loss of precision."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersAsked:
    """The public numbers of a configuration on which its answers depend.

    Attributes:
        relabel: what relabelling is charged; None where rows keep their labels.
        answers: what the answers are charged; None where they have no share.
        targets: accuracy alpha, failure beta and m, fresh answers of the ensemble.
        sampling_rate: fraction of the rows that the ensemble is made of.
        private_grid: whether labels come from the dichotomies of the rows themselves.
        class_count: the number L of labels.
        cutoff: T, unstable answers until the ensemble ends.
        account: what the answers share with draws; None where shares add up.
        hits_max: the most unstable answers that a generation may buy; None for T.
        is_by_cutoff: whether a table has the order and split of delta for T, as the first
            entry says; those of generations, which buy their own T of it, have the first rule's.

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
        """Return the random draws of rules that share the answers' privacy account, if any."""
        return () if self.account is None else self.account.draws_at(epsilon)

    def epsilon_of(self, row: AnsweringRow, epsilon: Fraction) -> Fraction:
        """Return a mechanism's epsilon for answers: all of it, or what random draws leave."""
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
        answered_count: fresh answers of the ensemble.
        unstable_count: the hits, each a unit of the cutoff: one an unstable answer
            where labels are answered, and 0 to 2 an answer with scores.
        halted: no fresh answer may follow, whatever the counters say.
        private_threshold_noise: rho of the sparse vector; None without one.

    """

    answered_count: int = 0
    unstable_count: int = 0
    halted: bool = False
    private_threshold_noise: int | None = field(default=None, repr=False)

    @property
    def tested(self) -> HitState:
        """The state of the stability test within the mechanism."""
        return HitState(self.unstable_count, self.private_threshold_noise)

    def after(self, tested: HitState, *, answers: int = 1) -> State:
        """Return the state after a number of further answers."""
        return State(
            self.answered_count + answers,
            tested.hit_count,
            private_threshold_noise=tested.private_threshold_noise,
        )


class Explained(NamedTuple):
    """One parameter of a release: its name, value, meaning and formula."""

    name: str
    value: str
    meaning: str
    formula: str


def shared_budget(asked: AnswersAsked) -> PipelineBudget | None:
    """Return the joint budget of relabelling and answers, divided between them.

    Raises:
        ConfigurationError: Lemma L's least cost exceeds what relabelling may cost.

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
class AnsweringRow:
    """The functions of one answering mechanism, as an entry of the table of mechanisms.

    Attributes:
        mechanism: its name in ``answers.mechanism``.
        calibration: its name in ``privacy.calibration``; None where that names none of its own.
        entry: its name in tables where another row serves its mechanism too; else None.
        rule: what a release's first entry says of it under :data:`RULE_KEY`; None where it
            says nothing.
        takes: whether it serves new releases of so many labels.
        theorem: what proves its claim, and how its answers add up, in words.
        proof: the file of that proof, from the root of the sources.
        parameters: the type of its parameters.
        calibrations: the types of its calibrations, the one that serves first.
        piece: name of the private piece by which a release keeps its calibration.
        calibrate: finds what serves at a budget.
        check: asserts everything that the claim needs of a calibration.
        read: a calibration from its plain form.
        is_of: whether a calibration is for the limits that are asked.
        serve: the parameters of a calibration, for k votes.
        size_wanted: k that keeps queries on which two thirds agree, of m, rows aside.
        unstable_alike: chance that a query on which all k votes agree is unstable.
        explain: the parameters in plain words.
        step: answers one query; no label at a hit.
        budget: what relabelling and answers may cost; None where answers have no share.
        fits: whether parameters are for so many labels and answers.
        start: draws what a run needs before its first query.
        test: decides one distance; None where nothing is tested, so that there are no scores.
        tests: decides distances in order, up to the last hit; None where only one by one.
        keeps_threshold: whether a threshold's noise is kept while it answers.
        is_refreshed: whether each hit draws the threshold's next noise.
        is_printed: whether sample, T and k are those that a paper prints.
        decides_cells: whether a public cell may be decided once and its answer given to
            every vector in it, where learners vote by such cells.
        counts_decisions: whether it serves releases that do so, and pays for the decisions that
            one record moves in place of hits, or answers.
        may_share_account: whether its answers are accounted at an order of Renyi divergence,
            at which draws before and after them may be accounted with them.
        orders_by_cutoff: whether its table has the order and split of delta for T in a new
            release that shares no account.
        ends_before_classifier: whether its account has exact draws alone, the classifier's after
            the last answer; a new release has one only if it is asked for.
        open_account: opens the account of a batch of rows that has a budget of its own; None where
            all batches have the release's.
        own_size: that k; None for the public rule.
        refuse_size: refuses a sample that does not feed k chunks, by k, n and n'.

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
        """The name of the answering mechanism in all tables."""
        return self.entry or self.shown

    @property
    def shown(self) -> str:
        """The mechanism's name in settings and in output for people."""
        return self.calibration or self.mechanism


def own(value: object, kind: type[OwnT]) -> OwnT:
    """Return a value after checking that it has the mechanism's own class.

    Raises:
        InvariantError: they are another mechanism's.

    """
    if not isinstance(value, kind):
        message = f"{kind.__module__} is handed its own {kind.__name__}"
        raise InvariantError(message)
    return value


def step_of(
    test: Callable[..., tuple[HitState, bool]],
) -> Callable[..., tuple[State, int | None]]:
    """Return a stability test as a step that releases the winning label if it is stable."""

    def step(
        parameters: Answering, state: State, private_value: Tally, noise: NoiseSource
    ) -> tuple[State, int | None]:
        tested, hit = test(parameters, state.tested, private_value.distance, noise)
        return state.after(tested), None if hit else private_value.plurality

    return step


def in_short(value: float) -> str:
    """Return a number's text with three significant digits, large ones as powers of ten."""
    if value and not 1e-4 <= abs(value) < 1e6:  # noqa: PLR2004 -- where plain digits are hard to read
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{float(digits):g}e{int(power)}"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 -- no digit is lost
