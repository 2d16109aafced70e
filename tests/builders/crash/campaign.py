"""A server killed again and again under its clients, and everything checked each time.

Run by itself it prints its counts::

    python -m tests.builders.crash.campaign --random 200 --each-edge 5 --seed 7

Every second life brings its log into the database at almost every commit.  Each of
two releases is killed at every edge of every step and at random moments.
The clients of one life may ask so many new vectors that no limit is met by then;
then everything is allowed, T is reached in the one and m_o in the other, and
either is killed again around that: a halted release, and a switch.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.answering.answer_query import Step
from app.cli import run
from tests.builders.crash.killing import marks_of, start_to_kill_at
from tests.builders.crash.killing_server import NOWHERE
from tests.builders.crash.load import Allowance, Crowd
from tests.builders.crash.marks import POINTS
from tests.builders.crash.planted import CHECKPOINTS
from tests.builders.crash.witnessed import Question, Witnessed
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from app.ledger.entries.fold import LedgerState
    from tests.builders.server.server_process import ServerProcess

PASSES_MAX = {Step.VALIDATE: 150, Step.ENQUEUE: 150}
PASSES_OF_A_BATCH_MAX = 10
DELAY_SECONDS_MAX = 0.3
QUIET_EVERY = 8
AGREED_A_LIFE, SPLIT_A_LIFE = 48, 3
BEYOND_THE_KILLS = 40
# Clients ask until a limit is met, and take whatever answer chance gives.
ASKED = Asked(agreed=0, split=0)
WAIT_SECONDS_MAX = 90.0
# A server that finds a switch charged draws before any client has come.
AT_ITS_START = "switch:drawn"
LIMITS = ("cutoff", "queries")


@dataclass(frozen=True)
class Kill:
    """How one life ends.

    Attributes:
        point: where the server ends itself, or nowhere.
        delay_seconds: how long after its first reply it is killed from outside.
        quiet: whether its clients have stopped by then.
        unlimited: whether its clients may ask until a limit is met.

    """

    point: str = NOWHERE
    delay_seconds: float = 0.0
    quiet: bool = False
    unlimited: bool = False


@dataclass
class Counts:
    """Where the servers died.

    Attributes:
        at_edges: edges at which they ended themselves.
        at_random: edges that a batch, or else a request, had passed last.
        quiet: kills while no client asked.
        switching: kills around the draw of the classifier.
        in_flight: kills with queries under way.

    """

    at_edges: Counter[tuple[str, str]] = field(default_factory=Counter)
    at_random: Counter[tuple[str, str]] = field(default_factory=Counter)
    quiet: int = 0
    switching: int = 0
    in_flight: int = 0

    @property
    def total(self) -> int:
        """All kills."""
        return self.at_edges.total() + self.at_random.total() + self.quiet + self.switching

    def of_step(self, step: Step) -> int:
        """Kills at or inside a step."""
        both = self.at_edges + self.at_random
        return sum(number for (name, _), number in both.items() if name == step.value)

    def table(self) -> Iterator[str]:
        """Yield the counts as lines."""
        yield f"{'step':<10}{'before':>8}{'after':>8}{'random':>8}{'all':>6}"
        for step in Step:
            before, after = (self.at_edges[step.value, edge] for edge in ("before", "after"))
            row = f"{before:>8}{after:>8}{self.of_step(step) - before - after:>8}"
            yield f"{step.value:<10}{row}{self.of_step(step):>6}"
        yield (
            f"{self.total} kills, {self.in_flight} with queries in flight; {self.quiet} while no "
            f"client asked, {self.switching} around the draw of the classifier"
        )


@dataclass
class Campaign:
    """All lives of one release.

    Attributes:
        folder: where it lies.
        limit: which limit it comes to: ``cutoff`` or ``queries``.
        kills: how its lives end, but for the last ones.
        seed: of what its clients ask.
        counts: where its servers died.
        plant: faults that its servers have.
        privacy: what its configuration has in this table beside a large epsilon.

    """

    folder: Path
    limit: str
    kills: list[Kill]
    seed: int
    counts: Counts
    plant: tuple[str, ...] = ()
    privacy: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Write the release, and ask one vector that everybody knows."""
        self.witnessed = Witnessed()
        self.crowd = Crowd(self.witnessed, self.seed)
        self.witnessed.ask(self.crowd.new_vector(is_split=False), with_key=True)
        self.state: LedgerState | None = None
        self._lives = count()

    @cached_property
    def limit_count(self) -> int:
        """T, or m_o: more than the lives before the last ones can meet."""
        a_life = SPLIT_A_LIFE if self.limit == "cutoff" else AGREED_A_LIFE + SPLIT_A_LIFE
        return a_life * len(self.kills) + BEYOND_THE_KILLS

    @cached_property
    def release(self) -> SmallRelease:
        """A release whose learners agree or are split, at any such T, as they should."""
        spare = str(10 * (AGREED_A_LIFE + SPLIT_A_LIFE) * (len(self.kills) + BEYOND_THE_KILLS))
        answers = {"queries": spare, "cutoff": str(self.limit_count)} | {
            self.limit: str(self.limit_count)
        }
        privacy = {"epsilon": "100", "delta": "1e-12"} | dict(self.privacy)
        changes = {"answers": answers, "privacy": privacy}
        return SmallRelease(self.folder, changes).write(asked=ASKED)

    def run(self) -> None:
        """Kill as planned, meet the limit, kill around that, and serve to the end."""
        for kill in (*self.kills, *self._last_kills()):
            self._live(kill)
        self._serve_to_the_end()

    def _last_kills(self) -> tuple[Kill, ...]:
        after = Kill(delay_seconds=DELAY_SECONDS_MAX / 2)
        if self.limit == "cutoff":
            return (Kill(delay_seconds=DELAY_SECONDS_MAX / 2, unlimited=True), after)
        return (Kill("switch:charged", unlimited=True), Kill(AT_ITS_START), after)

    def _live(self, kill: Kill) -> None:
        """Serve, repeat everything, ask until the server is killed, and check what is left."""
        plant = (*self.plant, CHECKPOINTS) if next(self._lives) % 2 else self.plant
        process = start_to_kill_at(self.release, kill.point, plant=plant).wait_until_ready()
        if kill.point != AT_ITS_START:
            self._repeat_everything(process.address)
        if process.is_running():
            self._ask_until_killed(process, kill)
        assert process.wait(WAIT_SECONDS_MAX) == -signal.SIGKILL, process.errors()
        self._count(kill)
        self._check()

    def _ask_until_killed(self, process: ServerProcess, kill: Kill) -> None:
        stop = threading.Event()
        marks_of(self.release).arm()
        watching = threading.Thread(target=self.crowd.watch_budget, args=(process.address,))
        asking = threading.Thread(
            target=self.crowd.ask_until_the_end, args=(process.address, self._allowance(kill), stop)
        )
        watching.start()
        asking.start()
        try:
            if kill.point == NOWHERE:
                self._wait_for(kill, process)
                if kill.quiet:
                    stop.set()
                    asking.join()
                process.kill()
            asking.join(WAIT_SECONDS_MAX)
            assert not asking.is_alive(), f"the point was not reached: {kill}"
        finally:
            stop.set()
            if process.is_running():
                process.kill()
            asking.join()
            watching.join()

    def _wait_for(self, kill: Kill, process: ServerProcess) -> None:
        """Wait for the first reply, or for the first refusal by a limit, and a while more."""
        witnessed = self.witnessed
        heard, refused = witnessed.heard, witnessed.refused.total()
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while witnessed.heard == heard or (kill.unlimited and witnessed.refused.total() == refused):
            assert process.is_running(), process.errors()
            assert time.monotonic() < deadline, f"the limit was not met: {kill}"
            time.sleep(0.001)
        time.sleep(kill.delay_seconds)

    def _allowance(self, kill: Kill) -> Allowance:
        if not kill.unlimited:
            return Allowance(agreed=AGREED_A_LIFE, split=SPLIT_A_LIFE)
        if self.limit == "cutoff":
            return Allowance(agreed=AGREED_A_LIFE, split=inf)
        return Allowance(agreed=inf, split=0)

    def _repeat_everything(self, address: str) -> None:
        """Ask again what was answered, which must be replayed, and what a kill left unanswered."""
        is_over = self.state is not None and self.state.has_last_answer
        switches = is_over and self.limit == "queries"
        questions = self.witnessed.answered_questions(with_key_only=switches)
        replies = self.crowd.repeat(address, questions)
        for question, reply in zip(questions, replies, strict=True):
            seen = self.witnessed.seen[question.vector]._asdict()
            assert reply == seen | {"phase": "ensemble", "replayed": True}
        self.crowd.repeat(address, sorted(self.witnessed.unanswered, key=str))

    def _count(self, kill: Kill) -> None:
        marks = marks_of(self.release)
        standing = marks.standing
        self.counts.in_flight += marks.under_way > 0
        if kill.point.startswith("switch"):
            self.counts.switching += 1
        elif kill.point != NOWHERE:
            step, edge, _ = kill.point.split(":")
            self.counts.at_edges[step, edge] += 1
        elif kill.quiet:
            self.counts.quiet += 1
        elif standing is not None:
            self.counts.at_random[standing[0].value, standing[1].value] += 1

    def _check(self) -> None:
        before, self.state = self.state, self.witnessed.check(self.release)
        if before is not None:
            assert before.answered <= self.state.answered
            assert before.head.sequence <= self.state.head.sequence

    def _serve_to_the_end(self) -> None:
        """Serve by the real command: the limit is met exactly, and nothing more is given."""
        with serving(self.release.config) as process:
            self._repeat_everything(process.address)
            (reply,) = self.crowd.repeat(
                process.address, [Question(self.crowd.new_vector(is_split=True), None)]
            )
            self._repeat_everything(process.address)
        self._check()
        assert self.state is not None
        if self.limit == "cutoff":
            assert reply["status"] == HTTPStatus.GONE
            assert self.state.unstable == self.limit_count
            assert self.state.answered == len(self.witnessed.seen)
        else:
            assert (reply["phase"], reply["query_id"]) == ("classifier", None)
            assert self.state.answered == self.limit_count
            assert [share.mechanism for share in self.state.charged][-1] == "classifier"
        assert run(["verify", "--config", str(self.release.config)]) == 0


def planned(*, random_count: int, each_edge: int, seed: int) -> list[Kill]:
    """Return so many kills at every edge and at random moments, in an order of chance."""
    generator = np.random.default_rng(seed)
    kills = [
        Kill(f"{step.value}:{edge.value}:{generator.integers(1, _passes_max(step) + 1)}")
        for step, edge in POINTS * each_edge
    ]
    delays = generator.uniform(0, DELAY_SECONDS_MAX, random_count).tolist()
    kills += [
        Kill(delay_seconds=delay, quiet=number % QUIET_EVERY == QUIET_EVERY - 1)
        for number, delay in enumerate(delays)
    ]
    return [kills[index] for index in generator.permutation(len(kills))]


def _passes_max(step: Step) -> int:
    return PASSES_MAX.get(step, PASSES_OF_A_BATCH_MAX)


def campaign(
    folder: Path, *, random_count: int, each_edge: int, seed: int, limits: Iterable[str] = LIMITS
) -> Counts:
    """Kill the servers of a release for each limit, and return where they died."""
    counts = Counts()
    kills = planned(random_count=random_count, each_edge=each_edge, seed=seed)
    for number, limit in enumerate(limits):
        of_limit = folder / limit
        of_limit.mkdir()
        share = kills[number :: len(LIMITS)]
        Campaign(of_limit, limit, share, seed=seed + number, counts=counts).run()
    return counts


def main() -> None:
    """Print the counts of a campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--each-edge", type=int, default=1)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)  # noqa: T201 -- what it is run for
    with tempfile.TemporaryDirectory() as folder:
        counts = campaign(
            Path(folder),
            random_count=arguments.random,
            each_edge=arguments.each_edge,
            seed=arguments.seed,
        )
    print("\n".join(counts.table()))  # noqa: T201 -- as above


if __name__ == "__main__":
    main()
