"""Batches that one server commits for others: once each, together, and not before the commit."""

from __future__ import annotations

import select
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import Edge, Step
from app.answering.batch_decisions import Decision
from app.answering.queries import NO_QUERIES, Asker, Fresh, Query, Relayed
from app.answering.replicas import forwarding as forwarding_module
from app.answering.replicas.forwarding import Forwarding, Given, Reply
from app.errors import KeyLimitError, LedgerUnavailableError
from app.ledger.database import notifications
from app.ledger.database.notifications import LEADING_LOCK, Messages
from app.ledger.ledger import KeyCount, RecordedAnswer, Transaction
from app.noise.system import SystemNoise
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    ask,
    identified,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.builders.ledger.postgresql_server import PostgresqlServer

PATIENCE_SECONDS = 60.0


class Server:
    """One of several servers on a ledger, whose writer's thread is the test's."""

    def __init__(self, release: SmallRelease, words: list[int]) -> None:
        """Open the release, and look around once."""
        self.answerer: RowAnswerer = release.answerer(words)
        messages = self.answerer.release.ledger.messages(SystemNoise())
        assert messages is not None
        self.messages: Messages = messages
        self.forwarding = Forwarding(self.answerer, messages)
        self.forwarding.look()

    def answer(self, *queries: Query) -> Sequence[Decision]:
        """Decide queries as the writer does."""
        return self.forwarding.answer_batch(self.answerer.identified(*queries))

    def lead_once(self, *own: Query) -> Sequence[Decision]:
        """Decide what another server sends next, with queries of one's own."""
        self.wait_for_a_message()
        return self.answer(*own) if own else self.forwarding.answer_batch(NO_QUERIES)

    def wait_for_a_message(self) -> None:
        """Wait until another server has sent something."""
        descriptor = self.forwarding.descriptor
        assert descriptor is not None
        assert select.select([descriptor], [], [], PATIENCE_SECONDS)[0]

    @property
    def answered(self) -> int:
        """The number of answers in the ledger."""
        return self.answerer.release.ledger.read_state().answered


class Asking:
    """A batch that a server decides on a thread of its own."""

    def __init__(self, decide: Callable[[], Sequence[Decision]]) -> None:
        """Begin."""
        self._decisions: list[Decision] = []
        self._error: Exception | None = None
        self._decide = decide
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._decisions = list(self._decide())
        except Exception as error:  # noqa: BLE001 -- raised where the test looks
            self._error = error

    @property
    def is_under_way(self) -> bool:
        """Whether it has no decisions yet."""
        return self._thread.is_alive()

    def decisions(self) -> list[Decision]:
        """Return the decisions, or raise the error, once there is either."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self.is_under_way
        if self._error is not None:
            raise self._error
        return self._decisions


@pytest.fixture
def shared(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[SmallRelease]:
    """Yield a release in a new database."""
    address = postgresql.create_database()
    yield SmallRelease(tmp_path, ledger_url=address)
    postgresql.drop_database(address)


@pytest.fixture
def pair(shared: SmallRelease) -> Iterator[tuple[Server, Server]]:
    """Yield a server that leads, and another one."""
    leader, other = Server(shared, [STABLE] * 8), Server(shared, [STABLE] * 8)
    assert (leader.forwarding.leads, other.forwarding.leads) == (True, False)
    yield leader, other
    leader.forwarding.close()
    other.forwarding.close()


def test_one_entry_holds_the_answers_of_two_servers(pair: tuple[Server, Server]) -> None:
    """The other's query comes first, and each server gets its own answers, both new."""
    leader, other = pair
    before = leader.answerer.release.ledger.read_state()
    asking = Asking(lambda: other.answer(ask(1)))
    (own,) = leader.lead_once(ask(2))
    (relayed,) = asking.decisions()
    assert isinstance(own, Fresh)
    assert isinstance(relayed, Relayed)
    assert (relayed.recorded.query_id, own.recorded.query_id) == (1, 2)
    after = leader.answerer.release.ledger.read_state()
    assert (after.head.sequence - before.head.sequence, after.answered) == (1, 2)


def test_a_vector_of_both_servers_has_one_answer(pair: tuple[Server, Server]) -> None:
    """Asked by both in one batch, it is new to one and repeated to the other."""
    leader, other = pair
    asking = Asking(lambda: other.answer(ask(1), ask(1, "key")))
    (own,) = leader.lead_once(ask(1))
    first, second = asking.decisions()
    assert isinstance(first, Relayed)
    assert second == own == first.recorded
    assert leader.answered == 1
    (again,) = leader.answer(ask(1, "key"))
    assert again == first.recorded


def test_many_queries_go_in_several_messages(pair: tuple[Server, Server]) -> None:
    """A batch that is longer than a message is divided, and its answers keep their order."""
    leader, other = pair
    queries = [ask(1, f"key-{number}", group=f"{number}" * 2500) for number in range(4)]
    asking = Asking(lambda: other.answer(*queries))
    while asking.is_under_way:
        leader.forwarding.answer_batch(NO_QUERIES)
    decisions = asking.decisions()
    assert {type(decision) for decision in decisions} == {Relayed}
    assert leader.answered == len(queries)
    again = leader.answer(*queries)
    assert again == [each.recorded for each in decisions if isinstance(each, Relayed)]


@pytest.mark.parametrize("count", [60, 80, 90, 104, 128])
def test_a_reply_is_never_longer_than_a_message(shared: SmallRelease, count: int) -> None:
    """Short vectors have answers longer than themselves, and fewer of them go together."""
    shared = replace(
        shared, changes={"answers__queries": "1000", "answers__mechanism": "stability"}
    )
    leader, other = Server(shared, [STABLE] * 200), Server(shared, [])
    queries = [ask(30 + number / 8) for number in range(count)]
    asking = Asking(lambda: other.answer(*queries))
    while asking.is_under_way:
        leader.forwarding.answer_batch(NO_QUERIES)
    assert {type(decision) for decision in asking.decisions()} == {Relayed}
    assert leader.answered == count
    leader.forwarding.close()
    other.forwarding.close()


def test_a_reply_takes_no_more_bytes_than_its_queries_were_sent_for() -> None:
    """The longest answers to as many API keys as there are queries stay within what is reckoned."""
    large, names = 2**63, [f"{number:064}" for number in range(30)]
    askers = [Asker(name, large, large) for name in names]
    queries = identified([Query(ask(1).vector, asker=asker) for asker in askers])
    answer = RecordedAnswer(large, 2**31, False, 1000, 1000, True, 2)  # noqa: FBT003 -- columns of a row
    counts = {name: KeyCount(large, large) for name in names}
    reply = Reply(large, [Given(answer, is_new=False)] * len(names), counts)
    body = forwarding_module._ENCODER.encode(reply)
    assert len(body) <= forwarding_module._reply_bytes_max(queries)


def test_no_reply_comes_before_the_commit(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other server still waits when all is written and nothing is committed."""
    leader, other = pair
    waited: list[bool] = []

    def observe(step: Step, edge: Edge) -> None:
        if (step, edge) == (Step.COMMIT, Edge.BEFORE):
            time.sleep(3 * forwarding_module.WAIT_SECONDS)  # it asks again, and waits on
            waited.append(asking.is_under_way)

    monkeypatch.setattr(leader.answerer, "observe", observe)
    asking = Asking(lambda: other.answer(ask(1)))
    leader.lead_once()
    assert isinstance(asking.decisions()[0], Relayed)
    assert waited == [True]


def test_a_reply_before_the_commit_is_seen(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a fault planted, which sends replies at once, the other server does not wait."""
    leader, other = pair
    waited: list[bool] = []

    def observe(step: Step, edge: Edge) -> None:
        if (step, edge) == (Step.COMMIT, Edge.BEFORE):
            asking.decisions()
            waited.append(asking.is_under_way)

    monkeypatch.setattr(leader.answerer, "observe", observe)
    monkeypatch.setattr(Transaction, "send", lambda _, messages: leader.messages.send(messages))
    asking = Asking(lambda: other.answer(ask(1)))
    leader.lead_once()
    assert waited == [False]


def test_a_batch_that_is_sent_twice_is_answered_once(pair: tuple[Server, Server]) -> None:
    """A message that was decided already finds its recorded answer."""
    leader, other = pair
    asking = Asking(lambda: other.answer(ask(1)))
    leader.wait_for_a_message()
    leader.forwarding.receive()
    taken = list(leader.forwarding._waiting)
    leader.forwarding.answer_batch(NO_QUERIES)
    (first,) = asking.decisions()
    assert isinstance(first, Relayed)
    leader.forwarding._waiting += taken
    leader.forwarding.answer_batch(NO_QUERIES)
    assert leader.answered == 1


def test_a_lost_reply_is_repeated_by_the_next_leader(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that hears nothing, and finds that it leads, looks into the ledger first."""
    leader, other = pair
    monkeypatch.setattr(Transaction, "send", _lose)
    asking = Asking(lambda: other.answer(ask(1)))
    leader.lead_once()
    leader.forwarding.close()
    (repeated,) = asking.decisions()
    assert isinstance(repeated, RecordedAnswer)
    assert repeated.query_id == 1
    assert other.forwarding.leads
    assert other.answered == 1


def test_a_silent_leader_is_done_without(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server whose leader keeps the lead and says nothing decides by itself, and goes on to."""
    _, other = pair
    monkeypatch.setattr(forwarding_module, "WAITS_MAX", 2)
    (decided,) = other.answer(ask(1))
    assert isinstance(decided, Fresh)
    began = time.monotonic()
    assert isinstance(other.answer(ask(2))[0], Fresh)
    assert time.monotonic() - began < forwarding_module.SILENT_SECONDS
    assert not other.forwarding.leads


def test_two_leaders_give_one_answer(pair: tuple[Server, Server]) -> None:
    """That nobody else leads is needed for nothing: the ledger's own lock decides."""
    leader, other = pair
    other.messages.leads = True  # the fault
    both = [Asking(lambda each=each: each.answer(ask(1), ask(2))) for each in pair]  # type: ignore[misc]  # a default binds it
    decided = [asking.decisions() for asking in both]
    recorded = [
        [each.recorded if isinstance(each, Fresh) else each for each in decisions]
        for decisions in decided
    ]
    assert recorded[0] == recorded[1]
    assert leader.answered == 2


def test_a_failed_commit_is_told_to_those_who_wait(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both servers refuse; what was drawn is recorded before anything else, and counts once."""
    leader, other = pair

    def refuse(*_: object) -> None:
        raise LedgerUnavailableError("the ledger is away")

    with monkeypatch.context() as failing:
        failing.setattr(Transaction, "finish", refuse)
        asking = Asking(lambda: other.answer(ask(1)))
        with pytest.raises(LedgerUnavailableError):
            leader.lead_once(ask(2))
        with pytest.raises(LedgerUnavailableError):
            asking.decisions()
    assert leader.answerer.has_undelivered
    leader.answer(ask(3))
    assert leader.answered == 3


def test_a_server_with_draws_of_its_own_does_not_forward(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it drew and could not commit it records itself, before anything new is drawn."""
    _, other = pair
    monkeypatch.setattr(forwarding_module, "FORWARDED_MAX", 0)
    with monkeypatch.context() as failing:
        failing.setattr(
            Transaction, "finish", lambda _: (_ for _ in ()).throw(LedgerUnavailableError("away"))
        )
        with pytest.raises(LedgerUnavailableError):
            other.answer(ask(1))
    monkeypatch.undo()
    assert other.answerer.has_undelivered
    assert isinstance(other.answer(ask(2))[0], Fresh)
    assert other.answered == 2


def test_a_limit_counts_the_answers_of_all_servers(pair: tuple[Server, Server]) -> None:
    """A key's limit is held at the leader; the refusal is its own server's."""
    leader, other = pair
    asker = Asker("somebody", answer_limit=1)
    first = Query(ask(1).vector, asker=asker)
    second = Query(ask(2).vector, asker=asker)
    asking = Asking(lambda: other.answer(first, second))
    leader.lead_once()
    relayed, refused = asking.decisions()
    assert isinstance(relayed, Relayed)
    assert isinstance(refused, KeyLimitError)
    assert other.answerer.key_counts["somebody"].answered == 1
    assert leader.answered == 1


def test_a_halted_release_refuses_at_each_server(shared: SmallRelease) -> None:
    """The leader leaves a query that gets no answer to its own server, which refuses it."""
    leader, other = Server(shared, [HIT] * 8), Server(shared, [STABLE])
    asking = Asking(lambda: other.answer(*map(ask, range(1, 6))))
    leader.lead_once()
    decisions = asking.decisions()
    assert [type(each) for each in decisions[:2]] == [Relayed, Relayed]
    assert not isinstance(decisions[-1], Relayed | Fresh | RecordedAnswer)
    leader.forwarding.close()
    other.forwarding.close()


def test_a_message_without_the_secret_is_nothing(
    pair: tuple[Server, Server], postgresql: PostgresqlServer, shared: SmallRelease
) -> None:
    """Whoever can connect can send; what was not made with the database's secret is dropped."""
    leader, other = pair
    engine = other.answerer.release.ledger._database.messaging
    assert engine is not None
    stranger = Messages(engine, b"x" * 32, 1, b"n" * 16)
    sealed = stranger.sealed(b"anything")
    with postgresql.connect(shared.ledger_url) as connection:
        for text in (sealed.text, "no base64", ""):
            connection.execute("SELECT pg_notify(%s, %s)", (sealed.channel, text))
    leader.wait_for_a_message()
    leader.forwarding.receive()
    assert not leader.forwarding.has_waiting


def test_the_connection_that_is_cut_passes_the_lead_on(
    pair: tuple[Server, Server], postgresql: PostgresqlServer, shared: SmallRelease
) -> None:
    """PostgreSQL lets go of the lock, and another server has it at its next look."""
    leader, other = pair
    with postgresql.connect(shared.ledger_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
            "AND classid::bigint = %s AND objsubid = 2",
            (LEADING_LOCK,),
        )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not other.forwarding.leads and time.monotonic() < deadline:
        other.forwarding.look()
    assert other.forwarding.leads
    while leader.forwarding.leads and time.monotonic() < deadline:
        leader.forwarding.receive()
    assert not leader.forwarding.leads
    assert isinstance(leader.answer(ask(1))[0], Fresh)


def test_a_server_that_has_lost_the_lead_keeps_nothing_of_others(
    pair: tuple[Server, Server],
) -> None:
    """What it had received is another's to decide, or it would begin empty batches without end."""
    leader, other = pair
    asking = Asking(lambda: other.answer(ask(1)))
    leader.wait_for_a_message()
    leader.forwarding.receive()
    assert leader.forwarding.has_waiting
    leader.forwarding.close()
    leader.forwarding.answer_batch(NO_QUERIES)
    assert not leader.forwarding.has_waiting
    assert isinstance(asking.decisions()[0], Fresh)
    assert other.answered == 1


def test_a_server_that_cannot_hear_commits_by_itself(
    shared: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a pooler that keeps no session nothing is heard, not even from oneself."""
    monkeypatch.setattr(notifications, "HEARD_SECONDS_MAX", 0.0)
    monkeypatch.setattr(Messages, "send", _lose)
    alone = Server(shared, [STABLE])
    assert not alone.messages.is_connected
    assert not alone.forwarding.leads
    assert isinstance(alone.answer(ask(1))[0], Fresh)


def _lose(*_: object) -> None:
    """Lose what is sent."""
