"""Servers on one database killed, paused and cut off under 64 clients, and everything checked.

Run by itself it prints its counts::

    python -m tests.builders.crash.replica_campaign --kills 50 --seed 7

Half of the kills end a server, which is started again, and half a connection to the
database.  In between the database is restarted, once orderly and once as by a crash.  At
last a server is paused in the middle of a transaction, the others come to the limit
without it, and it is resumed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.cli import run
from app.ledger.database import postgresql
from app.ledger.ledger import open_ledger
from tests.builders.crash.load import Allowance, Crowd
from tests.builders.crash.replicas import Replicas
from tests.builders.crash.roaming import RoamingCrowd
from tests.builders.crash.shared_witness import SharedWitness
from tests.builders.crash.witnessed import Question
from tests.builders.ledger.postgresql_server import own_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ledger.entries.fold import LedgerState
    from tests.builders.crash.witnessed import Reply
    from tests.builders.ledger.postgresql_server import OwnServer

SERVERS = 4
AGREED_A_KILL, SPLIT_A_KILL = 40, 2
BEYOND_THE_KILLS = 12
REPEATED_A_KILL = 40
QUIET_SECONDS_MAX = 0.3
# A server waits for the lock and for its turn, others start on the same two processors,
# and a draw that outlives a turn on a busy machine is begun again.
PROGRESS_SECONDS_MAX = 300.0
RESTARTS = ("fast", "immediate")
UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE
REFUSALS = (HTTPStatus.GONE, UNAVAILABLE)
# What the servers do in the database, said where they do not go on.
AT_WORK = (
    "SELECT application_name, state, wait_event, now() - state_change, query "
    "FROM pg_stat_activity WHERE application_name LIKE 'server%'"
)


@dataclass(frozen=True)
class Plan:
    """What is done to the servers of one release.

    Attributes:
        kills: of servers and connections, taken together.
        restarts: of the database, by mode.
        paused_seconds: how long the paused server is.
        idle_seconds: after which PostgreSQL ends a transaction that asks for nothing.
        follows: what follows the cutoff, ``classifier`` or ``halt``.
        forked: whether servers come out of the nursery; else ``conclave serve`` is run.
        plant: faults that every server has.

    """

    kills: int
    restarts: tuple[str, ...] = RESTARTS
    paused_seconds: float = 30.0
    idle_seconds: float = postgresql.IDLE_SECONDS_MAX
    follows: str = "classifier"
    forked: bool = False
    plant: tuple[str, ...] = ()

    @property
    def cutoff(self) -> int:
        """T: more than is met before the last kill."""
        return SPLIT_A_KILL * (self.kills + len(self.restarts)) + BEYOND_THE_KILLS


@dataclass
class ReplicaCampaign:
    """One release, its servers, and what is done to them.

    Attributes:
        folder: where everything lies.
        database: where the ledger is.
        plan: what is done.
        seed: of what clients ask and when something ends.
        counts: what was done.

    """

    folder: Path
    database: OwnServer
    plan: Plan
    seed: int
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Write the release, and ask one vector that everybody knows."""
        self.generator = np.random.default_rng(self.seed)
        self.url = self.database.create_database()
        self.replicas = Replicas(
            self.folder,
            self.database,
            self.url,
            SERVERS,
            self._changes(),
            plant=self.plan.plant,
            forked=self.plan.forked,
        )
        self.witness = SharedWitness()
        crowd = Crowd(self.witness, self.seed)
        self.allowance = Allowance(agreed=AGREED_A_KILL, split=SPLIT_A_KILL)
        self.clients = RoamingCrowd(
            crowd, self.replicas, self.allowance, self.seed, self.plan.idle_seconds
        )
        self.witness.ask(crowd.new_vector(is_split=False), with_key=True)

    def _changes(self) -> dict[str, dict[str, str]]:
        answers = {"cutoff": str(self.plan.cutoff), "on_cutoff": f'"{self.plan.follows}"'}
        return {
            "privacy": {"epsilon": "20", "delta": "1e-12"},
            "answers": {"queries": str(10**6), **answers},
        }

    def run(self) -> None:
        """Do what is planned, meet the limit without a paused server, and check it all."""
        try:
            self.replicas.start(*range(SERVERS))
            answered = len(self.witness.seen)  # before the first: all may be answered at once
            with self.clients.asking():
                self._wait_for_an_answer(answered)
                for act in self._acts():
                    act()
                    self._let_go_on()
                self._meet_the_limit()
            self._check()
        finally:
            self.replicas.end()
            self.database.drop_database(self.url)

    def _acts(self) -> list[Callable[[], None]]:
        """Return kills of servers and of connections by turns, and restarts among them."""
        acts: list[Callable[[], None]] = [
            self._kill if number % 2 else self._cut_off for number in range(self.plan.kills)
        ]
        for number, mode in enumerate(self.plan.restarts, 1):
            place = number * len(acts) // (len(self.plan.restarts) + 1)
            acts.insert(place, lambda mode=mode: self._restart(mode))  # type: ignore[misc]  # a default binds it
        return acts

    def _kill(self) -> None:
        """Kill a server; what it answered is repeated by another, and it is started again."""
        number = int(self.generator.integers(SERVERS))
        self.replicas.kill(number)
        self.counts["servers"] += 1
        self._repeat_some((number + 1) % SERVERS)
        self.replicas.start(number)

    def _cut_off(self) -> None:
        self.counts["connections"] += self.replicas.cut_off()

    def _restart(self, mode: str) -> None:
        self.database.restart(mode)
        self.counts[f"restarts, {mode}"] += 1

    def _let_go_on(self) -> None:
        """Allow further new vectors, and wait until one of them is answered, and a while more."""
        answered = len(self.witness.seen)
        self.allowance.grant(agreed=AGREED_A_KILL, split=SPLIT_A_KILL)
        self._wait_for_an_answer(answered)
        time.sleep(float(self.generator.uniform(0, QUIET_SECONDS_MAX)))

    def _wait_for_an_answer(self, answered: int) -> None:
        """Wait until more vectors than ``answered`` have their answer."""
        self._wait_until(lambda: len(self.witness.seen) > answered, "a new answer")

    def _wait_until(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PROGRESS_SECONDS_MAX
        while not holds():
            self.witness.assert_sound(REFUSALS)
            assert time.monotonic() < deadline, f"{what} does not come; {self._heard()}"
            time.sleep(0.005)

    def _heard(self) -> str:
        told, refused = self.witness.told, dict(self.witness.refused)
        with self.database.connect() as connection:
            work = connection.execute(AT_WORK).fetchall()
        return f"{self.witness.heard} replies, refused by {refused}, {told}; at work: {work}"

    def _repeat_some(self, number: int) -> None:
        """Repeat at one server what any has answered; while nothing follows, each is a replay."""
        known = self.witness.answered_questions(with_key_only=False)
        chosen = self.generator.permutation(len(known))[:REPEATED_A_KILL]
        self._expect_replays(number, [known[index] for index in chosen])

    def _expect_replays(self, number: int, questions: list[Question]) -> list[Reply]:
        replies = self.clients.repeat(number, questions)
        for question, reply in zip(questions, replies, strict=True):
            if "status" in reply:
                assert reply["status"] == UNAVAILABLE, f"repeated, it gets {reply}"
            else:
                seen = self.witness.seen[question.vector]._asdict()
                same = seen | {"phase": "ensemble", "replayed": True}
                assert reply == same, f"{same}, then {reply}"
        return replies

    # -- the limit -------------------------------------------------------------

    def _meet_the_limit(self) -> None:
        """Pause the leader in a transaction; the others meet the limit, and it learns of it.

        Another is asked by nobody meanwhile, and has only its memory of before.
        """
        paused = self.replicas.leader()
        alone = (paused + 1) % SERVERS
        self.replicas.leave_alone(alone)
        self._wait_until(lambda: not self.clients.are_at(alone), "the end of all connections")
        known = [Question(vector, None) for vector in list(self.witness.seen)[:REPEATED_A_KILL]]
        self._expect_replays(alone, known)
        self.allowance.grant(agreed=inf, split=0)
        self.replicas.pause(paused)
        self.counts["pauses"] += 1
        resumed_at = time.monotonic() + self.plan.paused_seconds
        try:
            self._wait_for_an_answer(len(self.witness.seen))
            self.allowance.grant(agreed=0, split=inf)
            told = "switched" if self.plan.follows == "classifier" else "halted"
            self._wait_until(lambda: getattr(self.witness.told, told), "the limit")
            time.sleep(max(0.0, resumed_at - time.monotonic()))
        finally:
            self.replicas.resume(paused)
        for number in (alone, paused):
            self._ask_who_missed_it(number, known)

    def _ask_who_missed_it(self, number: int, known: list[Question]) -> None:
        """Ask a server that was not there at the limit what it knew before, without keys."""
        replies = self.clients.repeat(number, known)
        phases = {reply.get("phase", reply.get("status")) for reply in replies}
        expected = "classifier" if self.plan.follows == "classifier" else "ensemble"
        assert phases <= {expected, UNAVAILABLE}, f"after the switch there is {phases}"
        replayed = {reply["replayed"] for reply in replies if "phase" in reply}
        assert replayed <= {self.plan.follows == "halt"}

    # -- what is left ----------------------------------------------------------

    def _check(self) -> None:
        """Let every server repeat everything, and hold the ledger to all that was seen."""
        follows_classifier = self.plan.follows == "classifier"
        for number in range(SERVERS):
            questions = self.witness.answered_questions(with_key_only=follows_classifier)
            replies = self._expect_replays(number, questions)
            assert all("status" not in reply for reply in replies), f"at the end {replies}"
            fresh = Question(self.clients.crowd.new_vector(is_split=True), None)
            (reply,) = self.clients.repeat(number, [fresh])
            if follows_classifier:
                assert (reply.get("phase"), reply.get("query_id")) == ("classifier", None), reply
            else:
                assert reply.get("status") == HTTPStatus.GONE, reply
            self.witness.asked.append(fresh)
        self.witness.assert_sound(REFUSALS)
        release = self.replicas.releases[0]
        state = self.witness.check(release, refusals=REFUSALS)
        assert state.unstable == self.plan.cutoff
        self._check_chain(state)
        assert run(["verify", "--config", str(release.config)]) == 0
        self.counts["answers"] = state.answered
        self.counts["unstable"] = state.unstable

    def _check_chain(self, state: LedgerState) -> None:
        """Check that what happens once has one entry, and that every head told is in the chain."""
        ledger = open_ledger(self.url, create=False)
        try:
            kinds, after = Counter[str](), 0
            hashes: dict[int, str] = {}
            while entries := ledger.public_entries(after, 1000):
                kinds.update(str(entry["kind"]) for entry in entries)
                numbers = range(after + 1, after + 1 + len(entries))
                assert [entry["sequence"] for entry in entries] == list(numbers)
                hashes |= dict(zip(numbers, (str(entry["hash"]) for entry in entries), strict=True))
                after += len(entries)
        finally:
            ledger.close()
        assert len(hashes) == state.head.sequence
        assert self.witness.hashes.items() <= hashes.items()
        assert kinds["ReleaseOpened"] == kinds["EnsembleFitted"] == 1
        assert kinds["ClassifierPublished"] == int(self.plan.follows == "classifier")


def main() -> None:
    """Print the counts of a campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--follows", choices=("classifier", "halt"), default="classifier")
    parser.add_argument("--forked", action="store_true")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)  # noqa: T201 -- what it is run for
    plan = Plan(arguments.kills, follows=arguments.follows, forked=arguments.forked)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, own_server() as database:
        campaign = ReplicaCampaign(Path(folder), database, plan, arguments.seed)
        campaign.run()
    told = ", ".join(f"{count} {what}" for what, count in campaign.counts.items())
    seconds = time.monotonic() - started
    print(f"{told}; {campaign.witness.heard} replies in {seconds:.0f} s")  # noqa: T201 -- as above


if __name__ == "__main__":
    main()
