"""From a private CSV to the halt of its release, over HTTP."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from tests.builders.server.chances import Asked
from tests.builders.server.http_release import agreed, agreed_label, split
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from tests.http.end_to_end.conftest import OpenedRelease

CUTOFF = 3
EXHAUSTED = "urn:conclave:problem:budget-exhausted"
CONFLICT = "urn:conclave:problem:idempotency-conflict"


def test_a_new_release_shows_what_it_charged(opened: OpenedRelease) -> None:
    """An open release nobody asked shows its shares, its limits and its size."""
    with Served(opened().settings()) as served:
        budget = served.budget()
        assert served.get("/ledger/head").json()["hash"] == budget["ledger"]["head"]
    assert budget["release"] == {"name": "members"}
    assert budget["phase"] == "ensemble"
    assert (budget["epsilon"], budget["delta"]) == (6.0, 1e-12)
    assert {share["mechanism"]: share["epsilon"] for share in budget["charged"]} == {
        "relabel": 1.8,
        "answers": 0.6,
    }
    assert {share["mechanism"]: share["epsilon"] for share in budget["reserved"]} == {
        "classifier": 3.6
    }
    assert sum(share["delta"] for share in budget["charged"] + budget["reserved"]) <= 1e-12
    assert budget["queries"] == {"answered": 0, "limit": 40, "left": 40}
    assert budget["unstable"] == {"count": 0, "cutoff": CUTOFF, "left": CUTOFF}
    assert budget["ensemble"] == {"size": 2400}


def test_answers_are_what_the_learners_agree_on(opened: OpenedRelease) -> None:
    """Fresh answers are numbered from 1, right and stable, by list and by name alike."""
    with Served(opened().settings()) as served:
        for number in range(1, 7):
            age, group = agreed(number)
            features = [age, group] if number % 2 else {"group": group, "age": age}
            assert served.answer(features) == {
                "query_id": number,
                "label": agreed_label(number),
                "stable": True,
                "phase": "ensemble",
                "replayed": False,
            }
        assert served.budget()["queries"] == {"answered": 6, "limit": 40, "left": 34}


def test_the_last_unstable_answer_is_given_and_the_next_refused(opened: OpenedRelease) -> None:
    """Unstable answer T is still given; a new query after it gets 410 and is not charged."""
    with Served(opened().settings()) as served:
        served.answer(agreed(1))
        unstable = [served.answer(split(number)) for number in range(CUTOFF)]
        assert [(each["label"], each["stable"]) for each in unstable] == [(None, False)] * CUTOFF
        assert [each["query_id"] for each in unstable] == [2, 3, 4]
        before = served.budget()
        for features in (agreed(2), split(CUTOFF)):
            refused = served.query(features, key="unused")
            assert refused.status_code == HTTPStatus.GONE
            assert refused.json()["type"] == EXHAUSTED
        assert served.budget() == before
        assert before["phase"] == "halted"
        assert before["unstable"] == {"count": CUTOFF, "cutoff": CUTOFF, "left": 0}
        assert before["queries"]["answered"] == 1 + CUTOFF
        assert served.get("/readyz").status_code == HTTPStatus.OK
        assert served.get("/healthz").status_code == HTTPStatus.OK
        assert served.get("/classifier").status_code == HTTPStatus.NOT_FOUND


def test_a_halted_release_replays(opened: OpenedRelease) -> None:
    """After the halt, and a restart, recorded vectors and keys get their answers again."""
    release = opened()
    with Served(release.settings()) as served:
        answers = {
            key: served.answer(features, key=key)
            for key, features in (("a", agreed(1)), ("b", split(0)), ("c", split(1)))
        }
        again = served.answer(agreed(1))
        assert again == answers["a"] | {"replayed": True}
        served.answer(split(2))
        halted = served.budget()
    with Served(release.settings()) as served:
        assert served.answer(agreed(1)) == answers["a"] | {"replayed": True}
        assert served.answer(split(0), key="b") == answers["b"] | {"replayed": True}
        assert served.answer(split(1), key="new-key") == answers["c"] | {"replayed": True}
        assert served.answer(split(1), key="new-key") == answers["c"] | {"replayed": True}
        assert served.query(agreed(1), key="new-key").status_code == HTTPStatus.CONFLICT
        assert served.budget() == halted


def test_replay_goes_by_the_vector_as_posted(opened: OpenedRelease) -> None:
    """Equal numbers are one vector, -0.0 and 0 included; clipped alike is not the same."""
    with Served(opened().settings()) as served:
        assert served.answer([0, "common"])["replayed"] is False
        for features in ([-0.0, "common"], [0.0, "common"], {"group": "common", "age": -0}):
            assert served.answer(features)["query_id"] == 1
        assert served.answer([-5, "common"])["query_id"] == 2
        assert served.answer([-6, "common"])["query_id"] == 3


def test_a_key_belongs_to_one_vector(opened: OpenedRelease) -> None:
    """A key sent with another vector gets 409, and nothing is charged or counted."""
    with Served(opened().settings()) as served:
        first = served.answer(agreed(1), key="once")
        before = served.budget()
        for features in (agreed(2), split(1)):
            refused = served.query(features, key="once")
            assert refused.status_code == HTTPStatus.CONFLICT
            assert refused.json()["type"] == CONFLICT
        assert served.budget() == before
        assert served.answer(agreed(1), key="once") == first | {"replayed": True}


def test_exactly_as_many_answers_as_the_limit(opened: OpenedRelease) -> None:
    """Of many clients at once exactly m get an answer, numbered without gaps."""
    with Served(opened(answers={"after": '"halt"'}).settings()) as served:

        async def ask_all() -> list[tuple[int, object]]:
            replies = await asyncio.gather(
                *(served.post_query(agreed(number)) for number in range(60))
            )
            return [(each.status_code, each.json().get("query_id")) for each in replies]

        replies = served.run(ask_all())
        given = [query_id for status, query_id in replies if status == HTTPStatus.OK]
        assert sorted(map(str, given)) == sorted(map(str, range(1, 41)))
        assert sum(status == HTTPStatus.GONE for status, _ in replies) == 20
        budget = served.budget()
    assert budget["phase"] == "halted"
    assert budget["queries"] == {"answered": 40, "limit": 40, "left": 0}


def test_clients_that_ask_the_same_at_once_get_one_answer(opened: OpenedRelease) -> None:
    """One new vector asked by many at once is answered once and replayed to the rest."""
    with Served(opened().settings()) as served:

        async def ask_all() -> list[dict[str, object]]:
            replies = await asyncio.gather(
                *(served.post_query(split(0), key=f"client-{number % 4}") for number in range(16))
            )
            return [each.json() for each in replies]

        replies = served.run(ask_all())
        assert {each["query_id"] for each in replies} == {1}
        assert [each["replayed"] for each in replies].count(False) == 1
        assert served.budget()["unstable"]["count"] == 1


def test_a_stream_goes_on_after_the_halt(opened: OpenedRelease) -> None:
    """In a stream every new line after the halt is refused, and recorded lines are answered."""
    lines = [agreed(1), split(0), [1, 2, 3], split(1), split(2), agreed(2), agreed(1), split(3)]
    with Served(opened().settings()) as served:
        replies = served.stream(lines)
        assert [each.get("status", HTTPStatus.OK) for each in replies] == [
            HTTPStatus.OK,
            HTTPStatus.OK,
            HTTPStatus.UNPROCESSABLE_ENTITY,
            HTTPStatus.OK,
            HTTPStatus.OK,
            HTTPStatus.GONE,
            HTTPStatus.OK,
            HTTPStatus.GONE,
        ]
        assert [each["query_id"] for each in replies if "query_id" in each] == [1, 2, 3, 4, 1]
        assert replies[6] == replies[0] | {"replayed": True}
        assert served.budget()["queries"]["answered"] == 4


def test_bad_input_is_refused_before_anything_is_charged(opened: OpenedRelease) -> None:
    """What does not fit the schema gets 422 with the feature's name, and no number."""
    with Served(opened().settings()) as served:
        before = served.budget()
        bad = [
            ({"age": 1}, "group"),
            ({"age": 1, "group": "rare", "sex": "f"}, "sex"),
            (["39", "rare"], "age"),
            ([True, "rare"], "age"),
            ([1, 2], "group"),
        ]
        for features, name in bad:
            refused = served.query(features)
            assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
            assert name in refused.json()["detail"]
        assert served.budget() == before


def test_coins_stand_in_for_unstable_labels(opened: OpenedRelease) -> None:
    """With coins an unstable answer has a fair label, is marked, and is repeated as given."""
    # Thirty coins, or a few less, are all the same with probability 2^-28; nothing else is chance.
    changes = {"unstable": '"coin"', "cutoff": "30"}
    with Served(opened(Asked(0, 0), answers=changes).settings()) as served:
        vectors = [split(number) for number in range(30)]
        answers = [each for each in served.stream(vectors) if each["stable"] is False]
        assert {each["label"] for each in answers} == {"no", "yes"}
        assert served.budget()["unstable"]["count"] == len(answers)
        again = [each for each in served.stream(vectors) if each["stable"] is False]
        assert again == [each | {"replayed": True} for each in answers]
