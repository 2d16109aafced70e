"""The answering of batches against a deliberately simple model.

Two processes share one ledger in a file.  They are asked batches of vectors and
keys; commits are refused, are cut off, or happen without being learnt of; either process
is restarted at any time; and where the classifier follows it is drawn.  What every
query gets, and what the ledger holds, must be what the model says.

The test is that of Theorem A, or the sparse vector with one threshold, or with a
threshold whose noise every hit draws anew.  Where another process answered the vector of a
hit that was refused, or ended its epoch, the release halts; what was cut off is forgotten.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import Phase as Generation
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.answering.replays import RecentReplays
from app.errors import LedgerUnavailableError, UncountedDrawsError
from app.ledger.database.statements import read_private, read_private_names
from app.ledger.entries import checkpoint
from app.ledger.entries.entry_kinds import threshold_noise_name
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.release.classifier.switch import switch_phase
from app.release.private_state import read_threshold_noise
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.mechanisms.prescribed import PrescribedLaplace
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    VotesByMargin,
    seeded_noise,
)
from tests.builders.release.small_release import ask as query_of
from tests.builders.release.svt_release import HIT as NOISE_OF_HIT
from tests.builders.release.svt_release import RELEASED as NOISE_OF_NONE
from tests.property.answering_model import (
    Answered,
    Asked,
    Draw,
    Given,
    Model,
    Phase,
    Terms,
    UncountedError,
    given_of,
)

if TYPE_CHECKING:
    from tests.builders.ledger.postgresql_server import PostgresqlServer

MARGINS = st.integers(-4, 4)
KEYS = st.one_of(st.none(), st.sampled_from("abc"))
BATCHES = st.lists(st.builds(Asked, margin=MARGINS, key=KEYS), max_size=6)
DRAW = st.builds(
    Draw, hit=st.booleans(), coin=st.integers(0, 1), threshold_noise=st.integers(-300, 300)
)
DRAWS = st.lists(DRAW, min_size=6, max_size=6)
STOPPED = [Given("stopped")]
SEQUELS = st.sampled_from(["halted", "classifier"])
TERMS = st.builds(
    Terms,
    cutoff=st.integers(1, 3),
    limit=st.integers(1, 7),
    after=SEQUELS,
    on_cutoff=SEQUELS,
    coin=st.booleans(),
    test=st.sampled_from(["profile", "one-threshold", "refreshed"]),
)
# More hits and no limit before the vectors run out, so that epochs end again and again.
TERMS_OF_EPOCHS = st.builds(
    Terms,
    cutoff=st.integers(4, 5),
    limit=st.just(9),
    after=st.just("halted"),
    on_cutoff=st.just("halted"),
    coin=st.just(value=False),
    test=st.just("refreshed"),
)
PROCESSES = st.integers(0, 1)
FAILING = ["refused", "cut off", "lost"]
FAULTS = st.sampled_from(
    [[], [], [], *([each] for each in FAILING), *([None, each] for each in FAILING)]
)
SETTING_OF: dict[Phase, str] = {"halted": "halt", "classifier": "classifier"}
TEMPLATES = Path(tempfile.mkdtemp(prefix="conclave-templates-"))
atexit.register(shutil.rmtree, TEMPLATES)


@cache
def template(model_setting: tuple[tuple[str, str], ...], test: str) -> Path:
    """Open a release once for each setting; return its ledger, to be copied."""
    folder = Path(tempfile.mkdtemp(dir=TEMPLATES))
    open_once(SmallRelease(folder, dict(model_setting)), test)
    return folder / "conclave.db"


@cache
def template_on(
    server: PostgresqlServer, model_setting: tuple[tuple[str, str], ...], test: str
) -> str:
    """Open a release once for each setting on a server; return its database, to be copied."""
    folder = Path(tempfile.mkdtemp(dir=TEMPLATES))
    address = server.create_database()
    open_once(SmallRelease(folder, dict(model_setting), address), test)
    return address


def open_once(release: SmallRelease, test: str) -> None:
    """Open a release with the test that is to decide, and close its ledger."""
    refreshed = partial(svt.calibrate_variant, svt.Variant.REFRESHED)
    # So few hits are cheaper with one threshold; the refreshed one must serve as well.
    with patch.object(svt, "calibrate", refreshed if test == "refreshed" else svt.calibrate):
        release.open().ledger.close()


class Process:
    """A process of the service: its answerer, its ledger, and what it failed to commit.

    Attributes:
        words: what its noise draws next.
        query_noise: what the sparse vector draws for queries.
        threshold_noise: what it draws for the threshold.
        undelivered: answers whose commit failed.
        left_no_trace: every one of their commits was cut off.
        has_happened: the last happened after all.

    """

    def __init__(self, release: SmallRelease, *, recent_max: int | None = None) -> None:
        """Start on the ledger as it is, with so many answers in memory where that is given."""
        self.words: list[int] = []
        self.query_noise, self.threshold_noise = PrescribedLaplace(), PrescribedLaplace()
        self.undelivered: list[Answered] = []
        self.left_no_trace = self.has_happened = False
        self.ledger = FaultyLedger(release)
        opened = release.open(ledger=self.ledger, noise=ScriptedNoise([]))
        if opened.private_ensemble is not None:
            opened.private_ensemble = VotesByMargin()
        answering = opened.mechanism.answering
        if isinstance(answering, sparse_vector.Parameters):
            prescribed = replace(
                answering, query_noise=self.query_noise, threshold_noise=self.threshold_noise
            )
            opened.mechanism = replace(opened.mechanism, answering=prescribed)
        self.answerer = RowAnswerer(opened, ScriptedNoise(iter(self._next_word, None)))
        if recent_max is not None:
            self.answerer.replays = RecentReplays(recent_max=recent_max)
            self.answerer.replays.leave_out_answers()

    def _next_word(self) -> int:
        return self.words.pop(0)

    def prescribe(self, draws: list[Draw], *, coin: bool) -> None:
        """Let the next fresh answers be drawn like this, whichever test decides them."""
        is_profile = not isinstance(
            self.answerer.release.mechanism.answering, sparse_vector.Parameters
        )
        self.words.clear()
        for draw in draws:
            if is_profile:
                self.words.append(HIT if draw.hit else STABLE)
            if draw.hit and coin:
                self.words.append(draw.coin << 63)
        self.query_noise.prescribe(NOISE_OF_HIT if draw.hit else NOISE_OF_NONE for draw in draws)
        self.threshold_noise.prescribe(draw.threshold_noise for draw in draws if draw.hit)

    def ask(self, batch: list[Asked]) -> list[Given] | None:
        """Return what a batch is given; None where its commit failed."""
        queries = [query_of(asked.margin, asked.key) for asked in batch]
        try:
            return [given_of(decision) for decision in self.answerer.answer_batch(queries)]
        except LedgerUnavailableError:
            return None
        except UncountedDrawsError:
            return STOPPED


class Answering(RuleBasedStateMachine):
    """Two processes and a model of their one release."""

    terms: ClassVar[st.SearchStrategy[Terms]] = TERMS
    recent_max: ClassVar[int | None] = None

    def __init__(self, server: PostgresqlServer | None = None) -> None:
        """Make a folder; the first rule opens the release, on a server where one is given."""
        super().__init__()
        self.server = server
        self.address = ""
        self.folder = Path(tempfile.mkdtemp(prefix="conclave-answering-"))

    @initialize(terms=st.runner().flatmap(lambda machine: machine.terms))
    def open(self, terms: Terms) -> None:
        """Open the release and start both processes."""
        self.model = Model(terms)
        changes = {
            "answers__cutoff": str(terms.cutoff),
            "answers__queries": str(terms.limit),
            "answers__after": SETTING_OF[terms.after],
            "answers__on_cutoff": SETTING_OF[terms.on_cutoff],
            "answers__unstable": "coin" if terms.coin else "abstain",
            "privacy__calibration": "profile" if terms.test == "profile" else "svt",
        }
        setting = tuple(changes.items())
        if self.server is None:
            shutil.copy(template(setting, terms.test), self.folder / "conclave.db")
        else:
            self.address = self.server.copy_database(template_on(self.server, setting, terms.test))
        self.release = SmallRelease(self.folder, changes, self.address)
        self.processes = [
            Process(self.release, recent_max=self.recent_max),
            Process(self.release, recent_max=self.recent_max),
        ]

    @rule(which=PROCESSES, batch=BATCHES, draws=DRAWS, faults=FAULTS)
    def ask(
        self,
        which: int,
        batch: list[Asked],
        draws: list[Draw],
        faults: list[str | None],
    ) -> None:
        """Ask one process a batch, and compare what each query is given."""
        process = self.processes[which]
        process.prescribe(draws, coin=self.model.terms.coin)
        process.ledger.faults = list(faults)  # type: ignore[arg-type]  # drawn from the faults
        expected = self._expect(process, batch, draws, list(faults))
        assert process.ask(batch) == expected
        process.ledger.faults = []
        if expected == STOPPED:
            self.restart(which)

    @rule(which=PROCESSES)
    def restart(self, which: int) -> None:
        """Start a process anew: what it drew and did not commit is forgotten, unseen."""
        self.processes[which].ledger.close()
        process = self.processes[which] = Process(self.release, recent_max=self.recent_max)
        noises = self.model.threshold_noises
        if self.model.phase == "ensemble" and noises:
            assert process.answerer.release.private_threshold_noise == noises[max(noises)]

    @precondition(lambda self: self.model.phase == "classifier")
    @rule(which=PROCESSES)
    def switch(self, which: int) -> None:
        """Draw the classifier, or find it drawn by the other process."""
        process, self.processes[which].undelivered = self.processes[which], []
        process.ask([])  # catches up, as the batch that met the limit did
        switch_phase(process.answerer.release, seeded_noise())
        assert process.answerer.release.classifier is not None

    @invariant()
    def the_ledger_holds_what_the_model_does(self) -> None:
        """Counters, answers in order without gaps, and nothing else."""
        ledger = self.processes[0].ledger
        state = ledger.read_state()
        counted = len(self.model.answers), self.model.unstable_count
        assert (state.answered, state.unstable) == counted
        recorded = [row.answer for row in ledger.answers_after(0)]
        assert [answer.query_id for answer in recorded] == list(range(1, state.answered + 1))
        assert [(answer.label, answer.stable) for answer in recorded] == [
            (answer.label, answer.stable) for answer in self.model.answers
        ]

    @invariant()
    def the_threshold_has_the_noise_of_each_epoch(self) -> None:
        """Beside that of the opening, one noise a commit with a hit, and only where refreshed."""
        state = (ledger := self.processes[0].ledger).read_state()
        with ledger.snapshot() as connection:
            names = read_private_names(connection, ledger.release_number)
            found = {name: read_private(connection, ledger.release_number, name) for name in names}
        noises = {
            name: int.from_bytes(piece.body, "big", signed=True)
            for name, piece in found.items()
            if piece is not None and name.startswith("threshold-noise-")
        }
        noises.pop(threshold_noise_name(0), None)
        kept = self.model.threshold_noises
        assert noises == {threshold_noise_name(hits): noise for hits, noise in kept.items()}
        if kept:
            assert read_threshold_noise(ledger, state, max(kept)) == kept[max(kept)]
        if self.model.is_refreshed:
            assert state.refreshed_at == max(self.model.threshold_noises, default=None)

    def teardown(self) -> None:
        """Verify the whole ledger, and that a last start finds the same phase."""
        if hasattr(self, "processes"):
            for process in self.processes:
                verify(process.ledger, expect_head=None)
                process.ledger.close()
            last = Process(self.release, recent_max=self.recent_max)
            of_key = last.ledger.digests.of_key
            assert last.answerer.phase.value == self.model.phase
            assert set(dict(last.ledger.keys())) == set(map(of_key, self.model.keys))
            last.ledger.close()
        if self.server is not None and self.address:
            self.server.drop_database(self.address)
        shutil.rmtree(self.folder)

    def _expect(
        self, process: Process, batch: list[Asked], draws: list[Draw], faults: list[str | None]
    ) -> list[Given] | None:
        """Let the model answer, commit by commit; None where one of them fails."""
        if process.undelivered:
            trial = self.model.copy()
            try:
                trial.take_up(process.undelivered, process.left_no_trace, process.has_happened)
            except UncountedError:
                self.model.halted = not faults[1:] or faults[1] in (None, "lost")
                return STOPPED
            if not self._commit(process, trial, faults):
                return None
        trial = self.model.copy()
        expected = trial.decide(batch, draws)
        return expected if self._commit(process, trial, faults) else None

    def _commit(self, process: Process, trial: Model, faults: list[str | None]) -> bool:
        """Make a trial the model unless its commit is refused; say whether it is learnt of."""
        fault, answered_before = (faults or [None]).pop(0), len(self.model.answers)
        trial.keep_threshold_noise(answered_before=answered_before)
        is_first = not process.undelivered
        process.left_no_trace = fault == "cut off" and (is_first or process.left_no_trace)
        process.undelivered = trial.answers[answered_before:] if fault else []
        process.has_happened = fault == "lost"
        if fault in (None, "lost"):
            self.model = trial
        return fault is None


class Forgetful(Answering):
    """The same where all but one answer and one key are looked up, and starts fold two entries."""

    recent_max = 1

    def __init__(self) -> None:
        """Write a checkpoint every other entry."""
        super().__init__()
        self.checkpoints = patch.object(checkpoint, "CHECKPOINT_ENTRIES", 2)
        self.checkpoints.start()

    def teardown(self) -> None:
        """End as the others do."""
        super().teardown()
        self.checkpoints.stop()


class Epochs(Answering):
    """The same where every hit draws another noise of the threshold."""

    terms = TERMS_OF_EPOCHS


TestAnswering = Answering.TestCase
TestAnswering.settings = settings(max_examples=12, stateful_step_count=18, deadline=None)
TestEpochs = Epochs.TestCase
TestEpochs.settings = settings(max_examples=16, stateful_step_count=18, deadline=None)
TestForgetful = Forgetful.TestCase
TestForgetful.settings = settings(max_examples=8, stateful_step_count=18, deadline=None)


@pytest.mark.long
@pytest.mark.parametrize("machine", [Answering, Epochs, Forgetful])
@pytest.mark.timeout(1200)
def test_many_runs_answer_as_the_model_does(machine: type[Answering]) -> None:
    """The same, many times as often."""
    run_state_machine_as_test(machine, settings=settings(max_examples=100, stateful_step_count=18))


@pytest.mark.parametrize(
    "examples", [pytest.param(2, id="some"), pytest.param(40, marks=pytest.mark.long, id="many")]
)
@pytest.mark.parametrize("machine", [Answering, Epochs])
@pytest.mark.timeout(1200)
def test_two_servers_of_postgresql_answer_as_the_model_does(
    postgresql: PostgresqlServer, machine: type[Answering], examples: int
) -> None:
    """What holds of two processes on a file holds of two servers on one database."""
    run_state_machine_as_test(
        lambda: machine(postgresql),  # type: ignore[arg-type]  # whatever makes one
        settings=settings(
            max_examples=examples, stateful_step_count=18, phases=(Generation.generate,)
        ),
    )
