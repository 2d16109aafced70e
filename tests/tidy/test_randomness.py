"""Private values meet one noise source, exact draws, and no other generator."""

from __future__ import annotations

import ast
import tomllib

import pytest

from tests.tidy.randomness import GENERATORS, Lint
from tests.tidy.sources import ROOT, place, python_files, syntax_tree
from tests.tidy.test_mechanism_docs import MECHANISMS

# Files that may name a generator, and why no claim rests on it.
GENERATOR_FILES = {
    "app/noise/system.py": "the one door to the operating system's generator",
    "app/learning/learner_seeds.py": "learners' own, seeded by chunk, made here only",
    "app/learning/trees/halving_learner.py": "a learner that asks what learner_seeds gives it",
    "app/planning/trial/made_up_records.py": "made-up people, by a generator of learner_seeds",
    "app/release/terms/answer_time.py": "made-up rows, by a generator of learner_seeds",
    "app/planning/trial/agreement.py": "made-up shares of cells, by a generator of learner_seeds",
    "app/data/demo_data.py": "public data",
}
# Rows whose draws are exact: floats appear where they are paid for, or come before.
EXACT_ROWS = {"app/noise": python_files("app/noise"), "app/privacy": MECHANISMS}
FLOAT_FILES = {
    "app/noise/exact_choice.py": "log weights, whose rounding the exponential mechanism pays for",
    "app/privacy/exponential/mechanism.py": "computes what that rounding costs",
    "app/privacy/exponential/relabel.py": "computes what that rounding costs",
    "app/privacy/multiplicative_weights/mechanism.py": "weights of a table, updated by noise",
    "app/privacy/noisy_gradient/mechanism.py": "integers that doubles hold, and noisy sums",
    "app/privacy/stability/certified/certified_table.py": "begins a search whose end is decided "
    "on integers, and tells of a table",
    "app/privacy/soft_labels/mechanism.py": "scores of learners, before they are counted in bins",
}


def found_in(source: str) -> set[str]:
    """Return which rules a module breaks."""
    lint = Lint(ast.parse(source))
    rules = {
        "generator": lint.generators(),
        "float noise": lint.float_noise(),
        "float": lint.floats(),
    }
    return {name for name, findings in rules.items() if any(findings)}


def test_only_the_named_files_have_generators() -> None:
    """The operating system's generator has one caller, and numpy's two named makers."""
    found = {
        str(path.relative_to(ROOT)): place(path, line) + f" {what}"
        for path in python_files("app")
        for line, what in Lint(syntax_tree(path)).generators()
    }
    assert set(found) == set(GENERATOR_FILES), found


def test_the_linter_bans_the_same() -> None:
    """What this lint takes for a generator, ruff refuses as well, at every developer's desk."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    banned = project["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(GENERATORS) <= set(banned)


def test_no_uniform_draw_becomes_a_float() -> None:
    """Nowhere is a word or a uniform integer divided, cast or put through a real function."""
    found = [
        f"{place(path, line)} {what}"
        for path in python_files("app")
        for line, what in Lint(syntax_tree(path)).float_noise()
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("row", EXACT_ROWS)
def test_floats_are_where_they_are_paid_for(row: str) -> None:
    """Samplers and answering mechanisms compute on integers and rationals alone."""
    found = {
        str(path.relative_to(ROOT)): place(path, line) + f" {what}"
        for path in EXACT_ROWS[row]
        for line, what in Lint(syntax_tree(path)).floats()
    }
    assert set(found) == {name for name in FLOAT_FILES if name.startswith(f"{row}/")}, found


SEPARATOR = "---\n"
PLANTED_GENERATORS = """\
import random
def draw():
    return random.random()
---
from random import SystemRandom
draw = SystemRandom().getrandbits
---
import random as reliable
draw = reliable.gauss
---
import secrets
draw = secrets.randbelow
---
import os
def draw():
    return os.urandom(8)
---
import os as system
def draw():
    return system.urandom(8)
---
from os import urandom as words
def draw():
    return words(8)
---
import os
from functools import partial
draw = partial(os.getrandom, 8)
---
import numpy as np
def draw():
    return np.random.default_rng().laplace()
---
import numpy
draw = numpy.random.laplace
---
from numpy import random as noise
draw = noise.normal
---
from numpy.random import Generator
def draw(given: Generator):
    return given
---
import numpy as np
def draw(given: np.random.Generator):
    return given
---
def draw(generator):
    return generator.standard_normal()
---
def draw(values, generator):
    generator.shuffle(values)
---
from scipy import stats
def draw():
    return stats.laplace.rvs()
---
import scipy.stats
draw = scipy.stats.dlaplace(1)
---
from sklearn.utils import check_random_state
draw = check_random_state(None)
---
import sklearn.utils
draw = sklearn.utils.resample
---
import uuid
def draw():
    return uuid.uuid4().int
---
from importlib import import_module
draw = import_module('random')
---
draw = __import__('secrets')
---
import os
draw = getattr(os, 'urandom')
---
def draw():
    with open('/dev/urandom', 'rb') as device:
        return device.read(8)
"""

# The textbook's inverse of the Laplace distribution in some spellings, and a sum of uniforms.
PLANTED_FLOAT_NOISE = """\
import numpy as np
def draw(noise, scale):
    return -scale * np.log(noise.word() / 2**64)
---
import math
def draw(noise):
    uniform = noise.word() * 2.0**-64
    return math.log(uniform)
---
from math import log
def draw(noise):
    word = noise.below(1 << 53)
    return log(word)
---
def draw(noise):
    word = noise.words(1)[0]
    if word:
        return float(word)
    return 0
---
def draw(noise):
    total = 0
    for word in noise.words(12):
        total += word
    return total / 12
---
import numpy as np
def draw(noise):
    words = np.array(noise.words(3))
    return words.astype(np.float64)
---
def draw(noise):
    uniform = int.from_bytes(noise.secret(8), 'big')
    return uniform / 2**64
---
draw = lambda noise: noise.word() / 2**64
---
async def draw(noise):
    if (word := noise.word()) > 3:
        return word * 0.5
    return 0
"""

PLANTED_FLOATS = """\
import math
def hit(distance, scale):
    return math.exp(-distance / scale)
---
def hit(word, probability):
    return word < float(probability)
---
def hit(distance):
    return distance + 0.5
---
import numpy as np
hit = np.exp(3)
---
from math import log1p
hit = log1p(3)
"""

HARMLESS = """\
def hit(noise, thresholds, distance):
    return noise.word() < thresholds[distance]
---
def draw(noise, law, count, total):
    return (count + law.draw(noise)) / total
---
from fractions import Fraction
def scale(epsilon: Fraction):
    return 3 / epsilon
---
from math import ceil, isqrt
def size(scale):
    return ceil(scale) + isqrt(9)
---
from bisect import bisect_right
def draw(noise, ends):
    return bisect_right(ends, noise.below(ends[-1])) // 2
---
from app.privacy.exponential import mechanism as exponential
def draw(parameters, noise):
    return exponential.draw(parameters, (), noise)
---
def order(noise, count):
    return noise.permutation(count)
"""


@pytest.mark.parametrize("source", PLANTED_GENERATORS.split(SEPARATOR))
def test_another_generator_is_found(source: str) -> None:
    """However it is imported, named, handed in or opened, it is one."""
    assert "generator" in found_in(source)


@pytest.mark.parametrize("source", PLANTED_FLOAT_NOISE.split(SEPARATOR))
def test_noise_from_floats_is_found(source: str) -> None:
    """A uniform draw that is scaled to the unit interval is followed through its names."""
    assert "float noise" in found_in(source)


@pytest.mark.parametrize("source", PLANTED_FLOATS.split(SEPARATOR))
def test_a_float_in_an_exact_row_is_found(source: str) -> None:
    """Constants, casts and real functions are."""
    assert "float" in found_in(source)


@pytest.mark.parametrize("source", HARMLESS.split(SEPARATOR))
def test_what_is_exact_is_let_be(source: str) -> None:
    """Words compared, integers divided whole, rationals and released noise break no rule."""
    assert not found_in(source)
