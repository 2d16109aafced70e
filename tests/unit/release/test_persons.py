"""A person lies in one slot with all rows, moves one vote, and nobody is told how many they are."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from app.data.persons import Persons
from app.data.rows import PrivateRows
from app.errors import ConfigurationError, DataError, InvariantError, ReleaseMismatchError
from app.ledger.verification import verify
from app.main import learn_from_settings, open_from_settings
from app.noise.system import SystemNoise
from app.planning.from_settings import plan_settings
from app.planning.output.plan_document import plan_document
from app.privacy.exponential.mechanism import Parameters
from app.release import opening
from app.release.classifier.switch import switch_phase
from app.release.drawing import SampledRows, sampled_rows
from app.release.views.budget import budget_view
from app.release.views.parameters_in_words import explained
from app.settings.settings import load_settings
from tests.builders.release.opened_release import pieces
from tests.builders.release.rows_of_persons import cells_of_persons, of_persons, rows_of
from tests.builders.release.small_release import CONFIGURATION, SmallRelease, seeded_noise
from tests.builders.schema.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from app.settings.settings import Settings

    Chunks = NDArray[np.int64]
    """The chunk of each row."""

PERSON_COUNT = 60
ONE_EACH = [1] * PERSON_COUNT
MANY = [1 + (7 * number) % 12 for number in range(PERSON_COUNT)]
DRAWN = ("release-secret", "permutation", "hypothesis", "ensemble")
cut = SampledRows.cut
KEYED = {"fingerprint", "private_digests", "hash", "previous_hash"}


def chunks_of(rows: PrivateRows, permutation: NDArray[np.int64], *, size: int) -> Chunks:
    """Return the chunk of each row, as an opening cuts them."""
    sample = sampled_rows(rows, permutation, count=rows.count)
    positions, offsets = sample.cut(np.arange(rows.count), size=size)
    chunks = np.full(len(rows.labels), -1)
    chunks[positions] = np.repeat(np.arange(size), np.diff(offsets))
    return chunks


def contents(rows: PrivateRows, chunks: Chunks) -> dict[int, Counter[object]]:
    """Return the rows of each chunk, by their persons, in no order."""
    assert rows.persons is not None
    who = [rows.persons.identities[number].tobytes() for number in rows.persons.numbers]
    found: dict[int, Counter[object]] = {int(chunk): Counter() for chunk in np.unique(chunks)}
    for chunk, values, person in zip(chunks.tolist(), rows.values.tolist(), who, strict=True):
        found[chunk][(person, *values)] += 1
    return found


@pytest.mark.parametrize("size", [1, 4, 7, PERSON_COUNT])
def test_all_rows_of_a_person_lie_in_one_chunk(size: int) -> None:
    """Chunks have as many persons, but for one; the order of the source is no matter."""
    permutation = np.array(seeded_noise().permutation(PERSON_COUNT))
    rows = rows_of(MANY)
    chunks = chunks_of(rows, permutation, size=size)
    assert rows.persons is not None
    held = [set(rows.persons.numbers[chunks == chunk].tolist()) for chunk in range(size)]
    assert sum(map(len, held)) == PERSON_COUNT == len(set().union(*held))
    assert {len(each) for each in held} <= {PERSON_COUNT // size, -(-PERSON_COUNT // size)}
    assert sum(map(Counter.total, contents(rows, chunks).values())) == sum(MANY)
    other = rows_of(MANY, shuffled=5)
    assert contents(other, chunks_of(other, permutation, size=size)) == contents(rows, chunks)


def learners_of(folder: Path, order: NDArray[np.int64]) -> bytes:
    """Return the learners of rows with labels of their own, which lie in an order."""
    folder.mkdir()
    numbers = rows_of(MANY).persons
    assert numbers is not None
    generator = np.random.default_rng(8)
    margins, labels = generator.uniform(-50, 50, sum(MANY)), generator.integers(0, 2, sum(MANY))
    values = np.stack([margins, np.zeros(sum(MANY))], axis=1)
    persons = Persons(numbers.numbers[order], numbers.identities)
    release = of_persons(folder, privacy__shares__relabel="0")
    release.open(rows=PrivateRows(values=values[order], labels=labels[order], persons=persons))
    return pieces(release)["ensemble"]


def capped_by_order(
    self: SampledRows, places: NDArray[np.int64], *, size: int, count_max: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return chunks of those rows alone that come first in the source: the planted fault."""
    positions, offsets = cut(self, places, size=size, count_max=count_max)
    kept = positions < sum(MANY) // 2
    return positions[kept], np.concatenate([[0], np.cumsum(kept)])[offsets]


def test_learners_do_not_follow_the_order_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order they are the same, to the byte; where the first rows are kept, they are not."""
    orders = [np.arange(sum(MANY)), np.random.default_rng(5).permutation(sum(MANY))]
    found = [learners_of(tmp_path / str(place), order) for place, order in enumerate(orders)]
    assert found[0] == found[1]
    monkeypatch.setattr(SampledRows, "cut", capped_by_order)
    capped = [learners_of(tmp_path / f"c{place}", order) for place, order in enumerate(orders)]
    assert capped[0] != capped[1]


def replaced(rows: PrivateRows, other: PrivateRows, assign: Callable[[PrivateRows], Chunks]) -> int:
    """Return how many chunks have other contents where one person is replaced."""
    one, two = contents(rows, assign(rows)), contents(other, assign(other))
    chunks = one.keys() | two.keys()
    return sum(one.get(chunk) != two.get(chunk) for chunk in chunks)


def test_replacing_a_person_changes_one_chunk() -> None:
    """Under the coupling of the proof: those in common keep their slots."""
    first = list(range(PERSON_COUNT))
    names = [*first[:10], *first[11:], 1000]  # person 10 gives way to another, who sorts last
    counts = [*MANY[:10], *MANY[11:], 12]
    rows, other = rows_of(MANY), rows_of(counts, names=names)
    permutation = np.array(seeded_noise().permutation(PERSON_COUNT))
    # The bijection of persons to slots that is the same but for the two that differ.
    follows = np.array([*range(10), PERSON_COUNT - 1, *range(10, PERSON_COUNT - 1)])

    def ours(given: PrivateRows) -> Chunks:
        slots = permutation if given is rows else follows[permutation]
        return chunks_of(given, slots, size=4)

    assert replaced(rows, other, ours) == 1
    # Fault 17: a person's chunk is a hash of the identifier.
    assert replaced(rows, other, _by_name) == 2
    # Fault 18: positions are those of sorted identifiers, without a permutation of their own.
    assert replaced(rows, other, lambda given: chunks_of(given, np.arange(60), size=4)) == 4


def _by_name(rows: PrivateRows) -> Chunks:
    """Return chunks by identifiers, of which those that are exchanged fall apart."""
    assert rows.persons is not None
    return (rows.persons.identities[:, -1].astype(np.int64) % 4)[rows.persons.numbers]


def test_slots_are_a_permutation_of_the_secret_generator(tmp_path: Path) -> None:
    """What is kept is a permutation of n_p persons, and follows the noise alone."""
    kept = []
    for seed, folder in ((3, "a"), (3, "b"), (4, "c")):
        (tmp_path / folder).mkdir()
        release = of_persons(tmp_path / folder)
        release.open(rows=rows_of(MANY if folder == "a" else ONE_EACH), noise=seeded_noise(seed))
        kept.append(np.frombuffer(pieces(release)["permutation"], dtype="<u4"))
    assert sorted(kept[0].tolist()) == list(range(PERSON_COUNT))
    np.testing.assert_array_equal(kept[0], kept[1])
    assert (kept[0] != kept[2]).any()


@pytest.mark.parametrize("relabel", ["0", "0.1"])
def test_one_row_a_person_is_a_release_of_rows(tmp_path: Path, relabel: str) -> None:
    """The same draws give the same permutation, labelling and learners, to the byte."""
    found = []
    for folder in ("rows", "persons"):
        (tmp_path / folder).mkdir()
        changes = {"privacy__shares__relabel": relabel}
        rows = rows_of(ONE_EACH)
        if folder == "rows":
            small = SmallRelease(tmp_path / folder, changes)
            rows = PrivateRows(values=rows.values, labels=rows.labels)
        else:
            small = of_persons(tmp_path / folder, **changes)
        small.open(rows=rows)
        kept = pieces(small)
        found.append([kept[name] for name in DRAWN])
    assert found[0] == found[1]


@pytest.mark.parametrize("output", ["label", "score"])
def test_a_person_moves_one_vote(tmp_path: Path, output: str) -> None:
    """With 50 rows in the place of one, at most one learner says or scores something else."""
    queries = np.array([[margin, group] for margin in np.arange(-50.0, 51) for group in range(4)])
    votes, scores = [], []
    for folder, count in (("one", 1), ("fifty", 50)):
        (tmp_path / folder).mkdir()
        changes = {"privacy__shares__relabel": "0", "answers__output": output}
        release = of_persons(tmp_path / folder, **changes)
        counts = [*MANY[:20], count, *MANY[21:]]
        rows = rows_of(counts)
        assert rows.persons is not None
        labels = rows.labels.copy()
        labels[rows.persons.numbers == 20] = count > 1  # against the rule that all others follow
        given = PrivateRows(values=rows.values, labels=labels, persons=rows.persons)
        ensemble = release.open(rows=given).ensemble
        votes.append(ensemble.vote_counts(queries))
        scores.append(ensemble.scores(queries) if output == "score" else votes[-1][:, :1])
    assert np.abs(votes[0] - votes[1]).max() <= 1
    assert ((scores[0] != scores[1]).sum(axis=1) <= 1).all()
    assert (scores[0] != scores[1]).any()


def test_the_learner_of_a_person_votes_by_its_own_rows(tmp_path: Path) -> None:
    """In every cell where it has some, though they lie in many; its rows are one vote in each."""
    release = cells_of_persons(tmp_path)
    rows = rows_of([3, *ONE_EACH[1:]])
    values, labels = rows.values.copy(), rows.labels.copy()
    values[:3, 0], labels[:3] = [-1.0, 1.0, 2.0], [1, 0, 0]  # both cells, against all others
    given = PrivateRows(values=values, labels=labels, persons=rows.persons)
    changes = {**release.changes, "privacy__shares__relabel": "0"}
    opened = SmallRelease(tmp_path, changes).open(rows=given)
    assert opened.ensemble_size == PERSON_COUNT
    votes = opened.ensemble.vote_counts(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    seen = Counter((rows.values[3:, 0] >= 0).tolist())
    # Those without rows in a cell vote in turn: half for each label, but for one.
    assert votes[0].tolist()[0] + votes[0].tolist()[1] == PERSON_COUNT
    assert votes[0][0] >= seen[False] + (PERSON_COUNT - seen[False]) // 2 - 1
    assert votes[1][1] >= seen[True] + (PERSON_COUNT - seen[True]) // 2 - 1


def test_a_cell_is_not_decided_once(tmp_path: Path) -> None:
    """A person's rows may lie in many cells, so each vector is a query of its own."""
    cells = cells_of_persons(tmp_path)
    opened = cells.open(rows=rows_of(MANY))
    assert not opened.state.decides_cells
    assert opened.state.release is not None
    assert "answers.replay" not in opened.state.release.parameters


def public_view(small: SmallRelease, row_counts: list[int]) -> list[str]:
    """Return everything public of a release that publishes a classifier, but keyed digests."""
    release = small.open(rows=rows_of(row_counts))
    switch_phase(release, seeded_noise(9))
    shown: list[object] = [
        budget_view(release).model_dump(mode="json"),
        [repr(each) for each in explained(release)],
        plan_document(plan_settings(small.settings(), release.configuration.settings.data.persons)),
        *release.ledger.public_entries(0, 100),
    ]
    verify(release.ledger, expect_head=None)
    return [msgspec.json.encode(_masked(each)).decode() for each in shown]


def _masked(value: Any) -> Any:
    """Replace keyed digests, and hashes of entries that hold them."""
    if isinstance(value, dict):
        return {
            name: "..." if name in KEYED or name == "ledger" else _masked(each)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(each) for each in value]
    return value


def test_the_number_of_rows_shows_nowhere(tmp_path: Path) -> None:
    """Two data sets in which one person has other copies of a row: entries, budget, words, plan."""
    views = []
    for folder, count in (("few", 1), ("many", 4321)):
        (tmp_path / folder).mkdir()
        small = of_persons(
            tmp_path / folder, data__persons=str(PERSON_COUNT), answers__after="classifier"
        )
        views.append(public_view(small, [*MANY[:5], count, *MANY[6:]]))
    assert views[0] == views[1]
    opened = next(view for view in views[0] if "ReleaseOpened" in view)
    assert f'"data.persons":"{PERSON_COUNT}"' in opened
    assert '"data.rows"' not in opened


def counts_of_draws(patch: pytest.MonkeyPatch, folder: Path) -> set[int]:
    """Return the n of every exact draw, by which its shares of epsilon and its guards go."""
    found, checked = set(), Parameters.__post_init__

    def noting(parameters: Parameters) -> None:
        found.add(parameters.row_count)
        checked(parameters)

    patch.setattr(Parameters, "__post_init__", noting)
    small = of_persons(folder, answers__after="classifier")
    switch_phase(small.open(rows=rows_of(MANY)), seeded_noise(9))
    return found


def test_draws_go_by_the_number_of_persons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows there are; an opening that counts these instead comes to nothing."""
    for folder in ("persons", "rows"):
        (tmp_path / folder).mkdir()
    assert counts_of_draws(monkeypatch, tmp_path / "persons") == {PERSON_COUNT}
    real = vars(opening)["ensemble_parameters"]
    monkeypatch.setattr(
        opening,
        "ensemble_parameters",
        lambda *given, **more: real(*given, **{**more, "row_count": sum(MANY)}),
    )
    with pytest.raises(InvariantError, match="no more than there are"):
        counts_of_draws(monkeypatch, tmp_path / "rows")


def test_the_unit_is_shown(tmp_path: Path) -> None:
    """A program reads it of the budget, a person of the page."""
    release = of_persons(tmp_path).open(rows=rows_of(MANY))
    assert budget_view(release).unit == "person"
    words = {each.name: each.value for each in explained(release)}
    assert words["neighbours"] == "all records of one person replaced"


def test_a_release_goes_on_with_the_same_persons_only(tmp_path: Path) -> None:
    """Rows in another order are the same; other persons, or rows of nobody, are not."""
    small = of_persons(tmp_path)
    small.open(rows=rows_of(MANY))
    small.open(rows=rows_of(MANY, shuffled=3))
    with pytest.raises(ReleaseMismatchError, match="holds other rows than those"):
        small.open(rows=rows_of(MANY, names=[*range(59), 77]))
    with pytest.raises(ReleaseMismatchError, match=r"has 59 persons, and .* on 60"):
        small.open(rows=rows_of(MANY[:59]))
    rows = rows_of(MANY)
    with pytest.raises(ReleaseMismatchError, match=r"data\.person"):
        SmallRelease(tmp_path).open(rows=PrivateRows(values=rows.values, labels=rows.labels))
    with pytest.raises(InvariantError, match="rows are of the configured unit"):
        small.open(rows=PrivateRows(values=rows.values, labels=rows.labels))


def test_recorded_answers_are_given_again_after_a_restart(tmp_path: Path) -> None:
    """A start draws nothing and serves on."""
    small = of_persons(tmp_path)
    release = small.open(rows=rows_of(MANY))
    size = release.ensemble_size
    release.ledger.close()
    again = small.open(rows=rows_of(MANY, shuffled=8))
    assert again.ensemble_size == size


def test_an_ensemble_has_no_more_learners_than_persons(tmp_path: Path) -> None:
    """However many rows they have."""
    small = of_persons(tmp_path, answers__ensemble="61")
    refused = SmallRelease(tmp_path, small.changes, even_if_hopeless=False)
    line = "61 learners need at least as many persons; there are 60"
    with pytest.raises(ConfigurationError, match=line):
        refused.open(rows=rows_of(MANY))


PERSONS = 'source = "rows.csv"\nperson = "patient"\npersons = 30'
MARK = "zephyrine"


def written(folder: Path, *, nobody: int | None = None) -> Settings:
    """Write rows of thirty persons in no order, and their configuration."""
    generator = np.random.default_rng(6)
    who: list[object] = [f"{MARK}-{number % 30}" for number in range(100)]
    if nobody is not None:
        who[nobody] = None
    margins = generator.uniform(-50, 50, 100).round(3).tolist()
    table = {
        "patient": who,
        "margin": margins,
        "group": ["a", "b", "a", "b"] * 25,
        "answer": ["yes" if margin >= 0 else "no" for margin in margins],
    }
    write_csv(folder / "rows.csv", table)
    path = folder / "conclave.toml"
    path.write_text(CONFIGURATION.replace('source = "rows.csv"', PERSONS), encoding="utf-8")
    return load_settings(path, {})


def test_a_release_of_persons_opens_goes_on_and_publishes(tmp_path: Path) -> None:
    """The same source is known again by its keyed digests; no identifier is stored or sent."""
    settings, noise = written(tmp_path), SystemNoise()
    told: list[str] = []
    for _ in range(2):
        release = open_from_settings(settings, noise=noise, warn=told.append, even_if_hopeless=True)
        assert release.ensemble_size == 5
        release.ledger.close()
    learn_from_settings(settings, public=None, noise=noise, tell=told.append, even_if_hopeless=True)
    (line,) = [each for each in told if each.startswith("drawing from")]
    assert "on 30 persons" in line
    dump = "\n".join(sqlite3.connect(tmp_path / "conclave.db").iterdump())
    for text in (dump, (tmp_path / "conclave.db").read_bytes().decode("latin-1"), *told):
        assert MARK not in text


def test_a_row_of_nobody_ends_the_opening(tmp_path: Path) -> None:
    """It is refused by its number, and nothing is charged."""
    settings = written(tmp_path, nobody=41)
    with pytest.raises(DataError, match=r'^data\.source: column "patient", row 42: names no'):
        open_from_settings(settings, noise=SystemNoise(), even_if_hopeless=True)
    entries = sqlite3.connect(tmp_path / "conclave.db").execute("SELECT count(*) FROM entries")
    assert entries.fetchone() == (0,)
