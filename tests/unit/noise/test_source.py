"""Words become exactly uniform integers, permutations and secrets."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import chi2

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.source import WORD_BOUND, permutation_from_keys
from app.noise.system import SystemNoise, _keys, drawn_ahead

if TYPE_CHECKING:
    from collections.abc import Callable


def test_scripted_words_come_in_order() -> None:
    """The double plays back exactly what it was given."""
    noise = ScriptedNoise([3, 1, 2])
    assert (noise.word(), noise.words(2), noise.drawn_count) == (3, [1, 2], 3)


def test_an_ended_script_raises() -> None:
    """A test that draws more than it scripted fails loudly."""
    with pytest.raises(InvariantError, match="ended"):
        ScriptedNoise([]).word()


def test_a_script_holds_words_only() -> None:
    """A value that is no 64-bit word is refused."""
    with pytest.raises(InvariantError, match="64 bits"):
        ScriptedNoise([WORD_BOUND]).word()


def test_below_takes_the_top_bits_of_a_word() -> None:
    """A bound of eight uses three bits of one word."""
    assert ScriptedNoise([5 << 61]).below(8) == 5


def test_below_rejects_what_lies_at_or_above_the_bound() -> None:
    """A candidate at the bound is thrown away, not reduced."""
    noise = ScriptedNoise([7 << 61, 5 << 61, 4 << 61])
    assert noise.below(5) == 4
    assert noise.drawn_count == 3


def test_below_spans_several_words() -> None:
    """A bound above 64 bits joins words, the first one most significant."""
    assert ScriptedNoise([1, 2]).below(1 << 128) == (1 << 64) + 2


def test_below_one_needs_no_randomness() -> None:
    """The only integer below one is zero."""
    assert ScriptedNoise([]).below(1) == 0


@pytest.mark.parametrize("bound", [2, 3, 5, 8, 11, 16, 100, 255, 257])
def test_below_is_exactly_uniform(bound: int) -> None:
    """Over all values of the bits that it reads, every integer comes once, the rest is redrawn."""
    bit_count = (bound - 1).bit_length()
    given: Counter[int] = Counter()
    for candidate in range(1 << bit_count):
        # The bits that are not read are ones; zero follows, which is never rejected.
        word = (candidate << (64 - bit_count)) | ((1 << (64 - bit_count)) - 1)
        noise = ScriptedNoise([word, 0])
        value = noise.below(bound)
        if noise.drawn_count == 1:
            given[value] += 1
        else:
            assert candidate >= bound
    assert given == Counter(range(bound))


def test_permutations_are_exactly_uniform() -> None:
    """Over all keys out of five, every order of three comes from ten, the rest is redrawn."""
    orders: Counter[tuple[int, ...]] = Counter()
    for keys in product(range(5), repeat=3):
        noise = ScriptedNoise([*keys, 0, 1, 2])
        order = tuple(noise.permutation(3).tolist())
        if noise.drawn_count == 3:
            orders[order] += 1
        else:
            assert len(set(keys)) < 3
    assert orders == Counter(dict.fromkeys(permutations(range(3)), 10))


def test_below_refuses_an_empty_range() -> None:
    """There is no integer below zero."""
    with pytest.raises(InvariantError, match="at least 1"):
        ScriptedNoise([]).below(0)


def test_below_stops_at_a_source_that_never_fits() -> None:
    """Endless rejection is reported as a broken source."""
    with pytest.raises(InvariantError, match="without end"):
        ScriptedNoise([WORD_BOUND - 1] * 300).below(5)


def test_permutation_orders_the_keys() -> None:
    """Position of the smallest key first."""
    assert ScriptedNoise([30, 10, 20]).permutation(3).tolist() == [1, 2, 0]


def test_permutation_draws_all_keys_again_on_a_duplicate() -> None:
    """Two equal keys have no fair order, so none of that draw is kept."""
    noise = ScriptedNoise([30, 30, 1, 9, 8, 7])
    assert noise.permutation(3).tolist() == [2, 1, 0]


def test_permutation_stops_at_a_source_that_repeats_itself() -> None:
    """Endless duplicates are reported as a broken source."""
    with pytest.raises(InvariantError, match="repeats"):
        permutation_from_keys(2, lambda count: np.zeros(count, dtype=np.uint64))


def test_scripted_secret_is_the_words_in_bytes() -> None:
    """A secret of nine bytes takes two words, little-endian."""
    assert ScriptedNoise([1, 2]).secret(9) == bytes([1, 0, 0, 0, 0, 0, 0, 0, 2])


def test_seeded_words_repeat_for_a_seed_and_differ_between_seeds() -> None:
    """A seeded script is reproducible and endless."""
    first, again, other = (ScriptedNoise(seeded_words(seed)).words(9) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_system_words_are_fresh_and_in_range() -> None:
    """A repeated 64-bit word among 1,000 has probability below 3e-14."""
    words = SystemNoise().words(1000)
    assert len(set(words)) == 1000
    assert all(0 <= word < WORD_BOUND for word in words)
    assert 0 <= SystemNoise().word() < WORD_BOUND


@pytest.mark.parametrize("draw", ["word", "words", "secret", "keys"])
def test_every_byte_of_system_draws_is_uniform(draw: str) -> None:
    """Each of the eight bytes of a word takes its 256 values equally often, however it is drawn."""
    # Pearson's statistic of each byte has 255 degrees of freedom; the limit has probability
    # 1e-10, 8e-10 over the eight bytes, since the draws are the operating system's.
    count, noise = 20_000, SystemNoise()
    sources: dict[str, Callable[[], object]] = {
        "word": lambda: [noise.word() for _ in range(count)],
        "words": lambda: noise.words(count),
        "secret": lambda: np.frombuffer(noise.secret(8 * count), dtype=np.uint64),
        "keys": lambda: _keys(count),
    }
    values = np.asarray(sources[draw](), dtype=np.uint64)[:, np.newaxis].view(np.uint8)
    assert values.shape == (count, 8)
    for place in range(8):
        seen = np.bincount(values[:, place], minlength=256)
        statistic = float(((seen - count / 256) ** 2).sum() * 256 / count)
        assert statistic < chi2.isf(1e-10, 255)


def test_system_secret_has_its_length() -> None:
    """Two secrets of 32 bytes differ, except with probability 2**-256."""
    noise = SystemNoise()
    assert len(noise.secret(32)) == 32
    assert noise.secret(32) != noise.secret(32)


def test_system_permutations_are_uniform() -> None:
    """All six orders of three come equally often."""
    # Pearson's statistic over 6 cells has 5 degrees of freedom; above 48.2 its
    # p-value is below 4e-9, which is the false-alarm probability: the draws are
    # the operating system's, so this test is not seeded.
    trial_count = 3000
    noise = SystemNoise()
    seen = Counter(tuple(noise.permutation(3).tolist()) for _ in range(trial_count))
    expected = trial_count / 6
    statistic = sum((seen[order] - expected) ** 2 / expected for order in permutations(range(3)))
    assert statistic < 48.2


def test_system_below_is_uniform() -> None:
    """Twelve values come equally often: 11 degrees of freedom, above 64 has p < 2e-9."""
    trial_count = 6000
    noise = SystemNoise()
    seen = Counter(noise.below(12) for _ in range(trial_count))
    expected = trial_count / 12
    assert sum((seen[value] - expected) ** 2 / expected for value in range(12)) < 64


def test_words_drawn_ahead_come_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is one call of the system and gives each word once; fresh ones follow it."""
    words = iter(range(1, 10))
    calls: list[int] = []

    def system(byte_count: int) -> bytes:
        calls.append(byte_count)
        return b"".join(next(words).to_bytes(8, "little") for _ in range(byte_count // 8))

    monkeypatch.setattr("os.urandom", system)
    block = drawn_ahead(SystemNoise(), 3)
    assert sorted(block.word() for _ in range(3)) == [1, 2, 3]
    assert calls == [24]
    assert [block.word(), *block.words(2)] == [4, 5, 6]


def test_only_the_systems_own_words_are_drawn_ahead() -> None:
    """A script keeps its order, and loses no word to a block."""
    noise = ScriptedNoise([3, 1])
    assert drawn_ahead(noise, 5) is noise
    assert noise.drawn_count == 0
