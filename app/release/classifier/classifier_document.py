"""The parts of the published classifier's JSON document, and their parsing."""

from __future__ import annotations

from typing import Final

import msgspec

from app.errors import invariant


class LiteralDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """The test of one feature, as in a tree's node, with its required outcome."""

    feature: int
    at_least: float | None = None
    category: str | None = None
    other: bool = False
    missing: bool = False
    fails: bool = False


class TermDocument(msgspec.Struct, frozen=True):
    """A conjunction of tests, and the amounts added to the scores if all of them hold."""

    tests: tuple[LiteralDocument, ...]
    weights: tuple[int, ...]


class WavesDocument(msgspec.Struct, frozen=True):
    """Cosine features of weighted sums of numbers, with integer weights in each score.

    With ``u`` the whole numbers of steps between the bounds of features, as a halfspace
    has them, the phase of a wave is its shift and the sum of its frequencies times
    ``u``, modulo 2^32.  A wave is the entry of ``cosines`` in whose equal part of the
    2^32 phases it lies; its weights times that are added to the scores.
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

    A number becomes a whole number of steps between its ``bounds``, as a halfspace's does: those
    are the numbers at which it stops to count, and lie within the bounds of its feature.
    """

    features: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    steps: int
    weights: tuple[tuple[int, ...], ...]


class ScoresDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """Integer scores: ``intercepts``, and ``weights`` of conjunctions, cosine features and numbers.

    One score stands for the second of two classes, which is predicted iff it is above
    zero; otherwise there is one a class, and the first of the largest is predicted.  A
    score divided by ``unit`` is on the scale of the descent, and no log-odds.
    """

    unit: int
    intercepts: tuple[int, ...]
    terms: tuple[TermDocument, ...]
    waves: WavesDocument | None = None
    numbers: NumbersDocument | None = None


class GridDocument(msgspec.Struct, frozen=True):
    """A label for each cell of a grid over some numeric features.

    A number has as many ``cuts`` of its feature at or below it as its rank says; a missing one
    has rank 0.  Cells are in the order of their ranks, the first feature's counting most;
    ``labels`` are those of runs of cells, and ``lengths`` how many cells a run has.
    """

    features: tuple[int, ...]
    cuts: tuple[tuple[float, ...], ...]
    labels: tuple[int, ...]
    lengths: tuple[int, ...]


class PredictorDocument(msgspec.Struct, frozen=True):
    """One predictor: the name of its Python class, and its own JSON description.

    ``of`` is ``finite``, whose description names the function, or the import
    path of a class, which reads the description.
    """

    of: str
    description: dict[str, object]


class StudentDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of a student, a model trained on answers; it reveals no single query.

    ``labelled_queries`` is how many answered queries had a label to learn from.
    There is a ``rule``, or an ``estimator`` with its ``params``: then
    ``otherwise`` is the label of a query on which it fails.  ``failed`` says
    that the learner ended with an error; the label that most queries had
    stands in.
    """

    labelled_queries: int
    rule: str | None = None
    estimator: str | None = None
    params: dict[str, object] | None = None
    otherwise: str | None = None
    failed: bool = False


FORMAT: Final = "conclave-classifier"


class FeatureDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A feature of the public schema, as far as the classifier needs it.

    Bounds of a date are in days from 1970-01-01; categories of a boolean are ``false`` and
    ``true``.
    """

    name: str
    kind: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None


class NodeDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tree's node: a leaf with a ``label``, or a test of one feature with two branches.

    The test is one of ``at_least`` (a cut of a clipped number), ``category``
    (an exact string), ``other`` (a string outside the categories) and
    ``missing``.  A leaf of a scored tree has ``scores`` too, which decide its label.
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
    """A hyperplane over integers ``u``: ``weights . u = offset``, with integer coefficients."""

    weights: tuple[int, ...]
    offset: int


class HalfspaceDocument(msgspec.Struct, frozen=True):
    """A halfspace over features, each measured in integer steps from its lower bound.

    ``u`` is ``(x - lower) / (upper - lower) * steps`` of a clipped number x,
    rounded to the nearest integer, a half to the even one, and 0 where it is
    missing.  A row is in the second class iff the first level whose ``weights
    . u - offset`` is not zero is positive.
    """

    features: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    steps: int
    levels: tuple[LevelDocument, ...]


class ClassifierDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole JSON document of a classifier; it suffices to predict, except in version 3.

    Version 1 has a ``tree``; version 2 has in its place a ``halfspace``, or a
    ``predictor`` of the operator's own, which its code predicts by.  A
    ``student`` was trained on answers; version 3 has nothing else: a fitted
    estimator, by which its server alone predicts.  Version 4 has ``scores``, version
    5 scores with waves, version 6 a ``grid``, and version 7 scores with ``numbers``.  Version 8
    has a ``tree`` whose leaves have scores; divided by ``tree_unit`` they are shares of rows.
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
        """Whether rows get scores beside labels."""
        return self.scores is not None or self.tree_unit is not None


def read_document(text: str | bytes) -> ClassifierDocument:
    """Return a classifier document after parsing it; code that it names is not imported."""
    document = msgspec.json.decode(text, type=ClassifierDocument)
    invariant(document.format == FORMAT, "a published classifier names its format")
    return document
