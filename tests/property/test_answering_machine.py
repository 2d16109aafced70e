"""The answering of batches against a deliberately simple model.

Two processes share one ledger in a file.  They are asked batches of vectors and
keys; commits are refused, or happen without being learnt of; either process is
restarted at any time; and where the classifier follows it is drawn.  What every
query gets, and what the ledger holds, must be what the model says.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.errors import LedgerUnavailableError
from app.ledger.verify import verify
from app.noise.scripted import ScriptedNoise
from app.service.answer_query import QueryAnswerer
from app.service.switch_phase import switch_phase
from tests.property.answering_model import Asked, Draw, Given, Model, Phase, given_of
from tests.unit.service.faulty_ledger import FaultyLedger
from tests.unit.service.small_release import HIT, STABLE, SmallRelease, VotesByMargin, seeded_noise
from tests.unit.service.small_release import ask as query_of

MARGINS = st.integers(-4, 4)
KEYS = st.one_of(st.none(), st.sampled_from("abc"))
BATCHES = st.lists(st.builds(Asked, margin=MARGINS, key=KEYS), max_size=6)
DRAWS = st.lists(st.builds(Draw, hit=st.booleans(), coin=st.integers(0, 1)), min_size=6, max_size=6)
SEQUELS = st.sampled_from(["halted", "classifier"])
PROCESSES = st.integers(0, 1)
FAULTS = st.sampled_from([[], [], [], ["refused"], ["lost"], [None, "refused"], [None, "lost"]])
SETTING_OF: dict[Phase, str] = {"halted": "halt", "classifier": "classifier"}
TEMPLATES = Path(tempfile.mkdtemp(prefix="conclave-templates-"))
atexit.register(shutil.rmtree, TEMPLATES)


@cache
def template(model_setting: tuple[tuple[str, str], ...]) -> Path:
    """Open a release once for each setting; return its ledger, to be copied."""
    folder = Path(tempfile.mkdtemp(dir=TEMPLATES))
    SmallRelease(folder, dict(model_setting)).open().ledger.close()
    return folder / "conclave.db"


class Process:
    """A process of the service: its answerer, its ledger, and what it failed to commit.

    Attributes:
        words: what its noise draws next.
        undelivered: margin, label and stable flag of answers whose commit failed.

    """

    def __init__(self, release: SmallRelease) -> None:
        """Start on the ledger as it is."""
        self.words: list[int] = []
        self.undelivered: list[tuple[int, int | None, bool]] = []
        self.ledger = FaultyLedger(release)
        opened = release.open(ledger=self.ledger, noise=ScriptedNoise([]))
        if opened.private_ensemble is not None:
            opened.private_ensemble = VotesByMargin()
        self.answerer = QueryAnswerer(opened, ScriptedNoise(iter(self._next_word, None)))

    def _next_word(self) -> int:
        return self.words.pop(0)

    def ask(self, batch: list[Asked]) -> list[Given] | None:
        """Return what a batch is given; None where its commit failed."""
        queries = [query_of(asked.margin, asked.key) for asked in batch]
        try:
            return [given_of(decision) for decision in self.answerer.answer_batch(queries)]
        except LedgerUnavailableError:
            return None


class Answering(RuleBasedStateMachine):
    """Two processes and a model of their one release."""

    def __init__(self) -> None:
        """Make a folder; the release is opened by the first rule."""
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="conclave-answering-"))

    @initialize(
        cutoff=st.integers(1, 3),
        limit=st.integers(1, 7),
        after=SEQUELS,
        on_cutoff=SEQUELS,
        coin=st.booleans(),
    )
    def open(self, cutoff: int, limit: int, after: Phase, on_cutoff: Phase, *, coin: bool) -> None:
        """Open the release and start both processes."""
        self.model = Model(cutoff, limit, after, on_cutoff, coin)
        changes = {
            "answers__cutoff": str(cutoff),
            "answers__queries": str(limit),
            "answers__after": SETTING_OF[after],
            "answers__on_cutoff": SETTING_OF[on_cutoff],
            "answers__unstable": "coin" if coin else "abstain",
        }
        shutil.copy(template(tuple(changes.items())), self.folder / "conclave.db")
        self.release = SmallRelease(self.folder, changes)
        self.processes = [Process(self.release), Process(self.release)]

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
        process.words[:] = self._words(draws)
        process.ledger.faults = list(faults)  # type: ignore[arg-type]  # drawn from the faults
        expected = self._expect(process, batch, draws, list(faults))
        assert process.ask(batch) == expected
        process.ledger.faults = []

    @rule(which=PROCESSES)
    def restart(self, which: int) -> None:
        """Start a process anew: what it drew and did not commit is forgotten, unseen."""
        self.processes[which].ledger.close()
        self.processes[which] = Process(self.release)

    @precondition(lambda self: self.model.phase == "classifier")
    @rule(which=PROCESSES)
    def switch(self, which: int) -> None:
        """Draw the classifier, or find it drawn by the other process."""
        self.processes[which].ask([])  # catches up, as the batch that met the limit did
        switch_phase(self.processes[which].answerer.release, seeded_noise())
        assert self.processes[which].answerer.release.classifier is not None

    @invariant()
    def the_ledger_holds_what_the_model_does(self) -> None:
        """Counters, answers in order without gaps, and nothing else."""
        ledger = self.processes[0].ledger
        state = ledger.read_state()
        assert state.answered == len(self.model.answers)
        assert state.unstable == self.model.unstable_count
        recorded = list(ledger.answers_after(0))
        assert [answer.query_id for answer in recorded] == list(range(1, state.answered + 1))
        assert [(answer.label, answer.stable) for answer in recorded] == [
            (label, stable) for _, label, stable in self.model.answers
        ]

    def teardown(self) -> None:
        """Verify the whole ledger, and that a last start finds the same phase."""
        if hasattr(self, "processes"):
            for process in self.processes:
                verify(process.ledger, expect_head=None)
                process.ledger.close()
            last = Process(self.release)
            assert last.answerer.phase.value == self.model.phase
            assert dict(last.ledger.keys()).keys() == {
                last.ledger.digests.of_key(key) for key in self.model.keys
            }
            last.ledger.close()
        shutil.rmtree(self.folder)

    def _words(self, draws: list[Draw]) -> list[int]:
        words: list[int] = []
        for draw in draws:
            words.append(HIT if draw.hit else STABLE)
            if draw.hit and self.model.coin:
                words.append(draw.coin << 63)
        return words

    def _expect(
        self, process: Process, batch: list[Asked], draws: list[Draw], faults: list[str | None]
    ) -> list[Given] | None:
        """Let the model answer, commit by commit; None where one of them fails."""
        if process.undelivered:
            trial = self.model.copy()
            trial.take_up(process.undelivered)
            if not self._commit(process, trial, faults):
                return None
        trial = self.model.copy()
        expected = trial.decide(batch, draws)
        return expected if self._commit(process, trial, faults) else None

    def _commit(self, process: Process, trial: Model, faults: list[str | None]) -> bool:
        """Make a trial the model unless its commit is refused; say whether it is learnt of."""
        fault = faults.pop(0) if faults else None
        process.undelivered = trial.answers[len(self.model.answers) :] if fault else []
        if fault != "refused":
            self.model = trial
        return fault is None


TestAnswering = Answering.TestCase
TestAnswering.settings = settings(max_examples=30, stateful_step_count=18, deadline=None)
