"""The parts of the published classifier's JSON document, and their parsing.

Scores here are integers: weighted sums of the results of feature tests, of numbers (the values of
numeric features), and of cosine features (cosines of random weighted sums of numbers). With two
classes the sign of the only score decides the label, and with more classes the largest score. The
value of a numeric feature is converted to a whole number ``u`` of equal steps from its lower bound.
A halfspace is a list of levels: each level compares a weighted sum of such values with an offset,
and a later level decides only if the sums of all earlier levels equal their offsets.
"""

from __future__ import annotations

from typing import Final

import msgspec

from app.errors import invariant


class LiteralDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """One feature test in a conjunction, and whether the test must succeed or fail."""

    feature: int
    at_least: float | None = None
    category: str | None = None
    other: bool = False
    missing: bool = False
    fails: bool = False


class TermDocument(msgspec.Struct, frozen=True):
    """A conjunction of feature tests, and the numbers added to the scores if all of them hold."""

    tests: tuple[LiteralDocument, ...]
    weights: tuple[int, ...]


class WavesDocument(msgspec.Struct, frozen=True):
    """Cosine features of weighted sums of numbers, with integer weights in each score.

    Let ``u`` be the values of numeric features, each as a whole number of steps between the
    feature's bounds. The phase of a cosine feature is its shift plus the sum of its frequencies
    times ``u``, modulo 2^32. The 2^32 phases are divided into equal parts, one for each entry of
    ``cosines``; the value of the feature is the entry for its phase. The feature's weights times
    this value are added to the scores.
    """

    features: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    steps: int
    cosines: tuple[int, ...]
    frequencies: tuple[tuple[int, ...], ...]
    shifts: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]


class NumbersDocument(msgspec.Struct, frozen=True):
    """Numeric features counted in steps from their lower bounds, and their integer weights.

    A number is clipped to ``bounds`` and becomes a whole number of steps between them. These bounds
    lie within the public bounds of the feature.
    """

    features: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    steps: int
    weights: tuple[tuple[int, ...], ...]


class ScoresDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """Integer scores: ``intercepts``, and ``weights`` of conjunctions, cosine features and numbers.

    With two classes there is one score, and the second class is predicted if and only if the score
    is above zero. With more classes there is one score per class, and the first class with the
    largest score is predicted. A score divided by ``unit`` is on the scale of the gradient descent
    that found the weights; it is not a log-odds.
    """

    unit: int
    intercepts: tuple[int, ...]
    terms: tuple[TermDocument, ...]
    waves: WavesDocument | None = None
    numbers: NumbersDocument | None = None


class GridDocument(msgspec.Struct, frozen=True):
    """A label for each cell of a grid over some numeric features.

    The rank of a number is how many of its feature's ``cuts`` (thresholds) are at or below it; a
    missing number has rank 0. Cells are sorted by their ranks, first by the rank of the first
    feature. Adjacent cells with equal labels form a run; ``labels`` has the label of each run, and
    ``lengths`` its number of cells.
    """

    features: tuple[int, ...]
    cuts: tuple[tuple[float, ...], ...]
    labels: tuple[int, ...]
    lengths: tuple[int, ...]


class PredictorDocument(msgspec.Struct, frozen=True):
    """A predictor (classifier code written by the operator): where it is, and which one it is.

    If ``of`` is the text ``finite``, ``description`` names a Python function that predicts.
    Otherwise ``of`` is the import path of a Python class, which reads ``description``.
    """

    of: str
    description: dict[str, object]


class StudentDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a student (a model trained on answers) was trained; this part names no single query.

    ``labelled_queries`` is the number of answered queries with a label, on which the student was
    trained. A student may be a rule (for example, a tree), which the rest of the document then
    contains; ``rule`` is the name of the method that found it. Otherwise ``estimator`` is the class
    of the fitted scikit-learn estimator, ``params`` are its parameters, and ``otherwise`` is the
    label of a query on which the estimator fails. ``failed`` is true if training ended with an
    error; all queries then get the most frequent label of the training queries.
    """

    labelled_queries: int
    rule: str | None = None
    estimator: str | None = None
    params: dict[str, object] | None = None
    otherwise: str | None = None
    failed: bool = False


FORMAT: Final = "conclave-classifier"


class FeatureDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A feature of the public schema, with the facts that the classifier needs.

    The bounds of a date are in days from 1970-01-01; the categories of a boolean are ``false`` and
    ``true``.
    """

    name: str
    kind: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None


class NodeDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tree's node: a leaf with a ``label``, or a test of one feature with two branches.

    The test is one of ``at_least`` (whether a number, clipped to its feature's bounds, is at least
    a threshold), ``category`` (whether a string equals a category), ``other`` (whether a string is
    outside the categories) and ``missing``. A leaf of a tree with scores also has ``scores``, which
    decide its label.
    """

    label: str | None = None
    scores: tuple[int, ...] | None = None
    feature: int | None = None
    at_least: float | None = None
    category: str | None = None
    other: bool = False
    missing: bool = False
    true: NodeDocument | None = None
    false: NodeDocument | None = None


class LevelDocument(msgspec.Struct, frozen=True):
    """A hyperplane over integers ``u``: ``weights . u = offset``, with integer coefficients.

    The integers are the values of features, in steps between the features' bounds.
    """

    weights: tuple[int, ...]
    offset: int


class HalfspaceDocument(msgspec.Struct, frozen=True):
    """A halfspace over features, each measured in integer steps from its lower bound.

    A number x is clipped to its feature's bounds and becomes the integer ``u``, which is
    ``(x - lower) / (upper - lower) * steps`` rounded to the nearest integer, a half to the even
    one; a missing number becomes 0. A row is in the second class if and only if the difference
    ``weights . u - offset`` is positive at the first level at which this difference is not zero.
    """

    features: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    steps: int
    levels: tuple[LevelDocument, ...]


class ClassifierDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole JSON document of a classifier; in most versions it suffices to predict.

    Version 1 has a ``tree``. Version 2 has a ``halfspace`` instead, or a ``predictor``, which needs
    the operator's code to predict. Version 3 has only a ``student``: the classifier is a fitted
    estimator that only its server can use. Version 4 has ``scores``, version 5 scores with cosine
    features (``waves``), version 6 a ``grid``, and version 7 scores with ``numbers``. Version 8 has
    a ``tree`` whose leaves have scores; divided by ``tree_unit``, these scores are proportions of
    rows. In other versions than 3 a ``student`` only says that the classifier was trained on
    answers.
    """

    format: str
    version: int
    release: str
    label: str
    classes: tuple[str, ...]
    missing: tuple[str, ...]
    features: tuple[FeatureDocument, ...]
    tree: NodeDocument | None = None
    tree_unit: int | None = None
    halfspace: HalfspaceDocument | None = None
    predictor: PredictorDocument | None = None
    student: StudentDocument | None = None
    scores: ScoresDocument | None = None
    grid: GridDocument | None = None

    @property
    def has_scores(self) -> bool:
        """Whether the classifier gives rows scores as well as labels."""
        return self.scores is not None or self.tree_unit is not None


def read_document(text: str | bytes) -> ClassifierDocument:
    """Return a classifier document after parsing it; code that it names is not imported."""
    document = msgspec.json.decode(text, type=ClassifierDocument)
    invariant(document.format == FORMAT, "a published classifier names its format")
    return document
