"""Random published classifiers, and rows that lie where mistakes would show.

A document needs no schema behind it: whatever a reader may meet is drawn, cuts
outside their bounds and categories that no feature has included.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from msgspec import structs

from app.release.classifier.classifier_document import (
    FORMAT,
    ClassifierDocument,
    FeatureDocument,
    GridDocument,
    HalfspaceDocument,
    LevelDocument,
    LiteralDocument,
    NodeDocument,
    NumbersDocument,
    ScoresDocument,
    TermDocument,
    WavesDocument,
)
from app.release.classifier.published_classifier import (
    GRID_VERSION,
    HYPOTHESIS_VERSION,
    NUMBERS_VERSION,
    SCORED_TREE_VERSION,
    SCORES_VERSION,
    TREE_VERSION,
    WAVES_VERSION,
    PublishedClassifier,
    published_document,
)
from app.release.classifier.written_hypotheses import (
    Condition,
    Written,
    decided_by,
    node_document,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.schema import Schema
    from app.data.vectors import Vector
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.trees.tree import Tree

BOUND = 1e6
BINARY = 2
VERSIONS = {
    "tree": TREE_VERSION,
    "halfspace": HYPOTHESIS_VERSION,
    "scores": SCORES_VERSION,
    "waves": WAVES_VERSION,
    "numbers": NUMBERS_VERSION,
    "grid": GRID_VERSION,
    "scored tree": SCORED_TREE_VERSION,
}
# Names, categories and classes that an exporter could trip over.
ODD_TEXTS = [
    "label",
    "features",
    "label_",
    "/",
    "/value_0",
    "//constant_1",
    "",
    " ",
    "ä\n",
    '"',
    "0",
]
TEXTS = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=4))
TREES = ("tree", "scored tree")
NAMES = TEXTS.filter(bool)
NUMBERS = st.floats(-BOUND, BOUND)
HALFSPACE_STEPS = 10**6
WAVE_STEPS = 1 << 16
PHASES = 1 << 32
WEIGHT_MAX = 10**6


@st.composite
def documents(draw: st.DrawFn, *, only_numbers: bool = False) -> ClassifierDocument:
    """Draw a tree (scored or not), a halfspace, scores of several inputs, or a grid."""
    features = tuple(
        draw(_numeric(name) if only_numbers else _of_any_kind(name))
        for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    )
    classes = tuple(draw(st.lists(TEXTS, min_size=2, max_size=4, unique=True)))
    numbers = [index for index, feature in enumerate(features) if feature.bounds is not None]
    kinds = [
        "tree",
        "scored tree",
        "scores",
        *(["halfspace", "waves", "numbers", "grid"] if numbers else []),
    ]
    kind = draw(st.sampled_from(kinds))
    has_scores = kind in ("scores", "waves", "numbers")
    is_scored = kind == "scored tree"
    scores = draw(_scores(features, len(classes))) if has_scores else None
    if scores is not None and kind == "waves":
        scores = structs.replace(scores, waves=draw(_waves(features, numbers, len(classes))))
    if scores is not None and kind == "numbers":
        scores = structs.replace(scores, numbers=draw(_numbers(features, numbers, len(classes))))
    return ClassifierDocument(
        format=FORMAT,
        version=VERSIONS[kind],
        release=draw(NAMES),
        label="y",
        classes=classes,
        missing=tuple(
            draw(st.lists(st.sampled_from(["?", "n/a", "a", "7.50", "1e999"]), unique=True))
        ),
        features=features,
        tree=draw(_trees(features, classes, scored=is_scored)) if kind in TREES else None,
        tree_unit=1 << 20 if is_scored else None,
        halfspace=draw(_halfspaces(features, numbers)) if kind == "halfspace" else None,
        scores=scores,
        grid=draw(_grids(numbers, len(classes))) if kind == "grid" else None,
    )


def vectors(document: ClassifierDocument) -> st.SearchStrategy[list[Vector]]:
    """Draw rows of a document's features, one to thirty."""
    cuts = [*_cuts(document.tree), *_score_cuts(document.scores)]
    if document.grid is not None:
        cuts += [cut for feature in document.grid.cuts for cut in feature]
    values = [
        _categorical_values(feature, document.missing)
        if feature.bounds is None
        else _numeric_values([*cuts, *feature.bounds])
        for feature in document.features
    ]
    return st.lists(st.tuples(*values), min_size=1, max_size=30)


def _numeric(name: str) -> st.SearchStrategy[FeatureDocument]:
    bounds = st.lists(NUMBERS, min_size=2, max_size=2, unique=True).map(sorted)
    bounds = bounds.filter(lambda both: both[1] > both[0])
    return bounds.map(lambda both: FeatureDocument(name, "numeric", bounds=(both[0], both[1])))


def _of_any_kind(name: str) -> st.SearchStrategy[FeatureDocument]:
    as_date = _numeric(name).map(lambda number: structs.replace(number, kind="date"))
    boolean = FeatureDocument(name, "boolean", categories=("false", "true"))
    return st.one_of(_numeric(name), _categorical(name), as_date, st.just(boolean))


def _categorical(name: str) -> st.SearchStrategy[FeatureDocument]:
    categories = st.lists(NAMES, min_size=1, max_size=4, unique=True).map(tuple)
    return categories.map(lambda texts: FeatureDocument(name, "categorical", categories=texts))


@st.composite
def _trees(
    draw: st.DrawFn,
    features: tuple[FeatureDocument, ...],
    classes: tuple[str, ...],
    *,
    scored: bool,
) -> NodeDocument:
    """Draw a tree of up to five levels, full or not; scores often tie, and decide labels."""
    width = 1 if len(classes) == BINARY else len(classes)
    weights = st.tuples(*[st.one_of(st.integers(-1, 1), st.integers(-(2**20), 2**20))] * width)

    def leaf() -> NodeDocument:
        if not scored:
            return NodeDocument(label=draw(st.sampled_from(classes)))
        scores = draw(weights)
        return NodeDocument(label=classes[decided_by(scores)], scores=scores)

    def node(depth: int) -> NodeDocument:
        if depth == 0 or draw(st.integers(0, 5)) == 0:
            return leaf()
        feature = draw(st.integers(0, len(features) - 1))
        test = draw(_tests(features[feature]))
        return NodeDocument(feature=feature, true=node(depth - 1), false=node(depth - 1), **test)

    return node(draw(st.integers(0, 5)))


def _tests(feature: FeatureDocument) -> st.SearchStrategy[Condition]:
    if feature.bounds is not None:
        return st.one_of(NUMBERS, st.sampled_from(feature.bounds)).map(
            lambda cut: Condition(at_least=cut)
        )
    words = st.one_of(st.sampled_from(feature.categories or ()), TEXTS)
    return st.one_of(
        words.map(lambda word: Condition(category=word)),
        st.sampled_from([Condition(other=True), Condition(missing=True)]),
    )


@st.composite
def _halfspaces(
    draw: st.DrawFn, features: tuple[FeatureDocument, ...], numbers: list[int]
) -> HalfspaceDocument:
    """Draw a halfspace over some of the numbers, whose levels are often zero."""
    chosen = draw(st.lists(st.sampled_from(numbers), min_size=1, unique=True))
    weights = st.one_of(st.integers(-2, 2), st.integers(-WEIGHT_MAX, WEIGHT_MAX))
    steps = draw(st.sampled_from([1, 2, 3, 10, HALFSPACE_STEPS]))
    levels = st.builds(
        LevelDocument,
        weights=st.tuples(*[weights] * len(chosen)),
        offset=st.one_of(weights, st.integers(-steps, steps)),
    )
    return HalfspaceDocument(
        features=tuple(chosen),
        bounds=tuple(features[index].bounds or (0.0, 1.0) for index in chosen),
        steps=steps,
        levels=tuple(draw(st.lists(levels, max_size=3))),
    )


@st.composite
def _scores(
    draw: st.DrawFn, features: tuple[FeatureDocument, ...], class_count: int
) -> ScoresDocument:
    """Draw scores of up to six terms of up to four tests each, which are often equal."""
    width = 1 if class_count == BINARY else class_count
    weights = st.tuples(*[st.one_of(st.integers(-2, 2), st.integers(-(2**50), 2**50))] * width)

    def literal() -> LiteralDocument:
        feature = draw(st.integers(0, len(features) - 1))
        test = draw(_tests(features[feature]))
        return LiteralDocument(feature=feature, fails=draw(st.booleans()), **test)

    def term() -> TermDocument:
        count = draw(st.integers(1, 4))
        return TermDocument(tuple(literal() for _ in range(count)), draw(weights))

    terms = tuple(term() for _ in range(draw(st.integers(0, 6))))
    return ScoresDocument(unit=1024, intercepts=draw(weights), terms=terms)


@st.composite
def _waves(
    draw: st.DrawFn, features: tuple[FeatureDocument, ...], numbers: list[int], class_count: int
) -> WavesDocument:
    """Draw up to five waves of some of the numbers, of large and of small frequencies."""
    width = 1 if class_count == BINARY else class_count
    chosen = draw(st.lists(st.sampled_from(numbers), min_size=1, unique=True))
    count = draw(st.integers(1, 5))
    phases = st.one_of(st.integers(0, 3), st.integers(0, PHASES - 1), st.just(PHASES - 1))
    weights = st.one_of(st.integers(-2, 2), st.integers(-(2**40), 2**40))

    def rows(values: st.SearchStrategy[int], length: int) -> tuple[tuple[int, ...], ...]:
        return tuple(draw(st.tuples(*[values] * length)) for _ in range(count))

    return WavesDocument(
        features=tuple(chosen),
        bounds=tuple(features[index].bounds or (0.0, 1.0) for index in chosen),
        steps=WAVE_STEPS,
        cosines=draw(st.tuples(*[st.integers(-256, 256)] * draw(st.sampled_from([1, 2, 8])))),
        frequencies=rows(phases, len(chosen)),
        shifts=draw(st.tuples(*[phases] * count)),
        weights=rows(weights, width),
    )


@st.composite
def _numbers(
    draw: st.DrawFn, features: tuple[FeatureDocument, ...], numbers: list[int], class_count: int
) -> NumbersDocument:
    """Draw some of the numbers, from bound to bound or between narrower ones."""
    width = 1 if class_count == BINARY else class_count
    chosen = draw(st.lists(st.sampled_from(numbers), min_size=1, unique=True))
    weights = st.one_of(st.integers(-2, 2), st.integers(-(2**40), 2**40))

    def narrower(bounds: tuple[float, float]) -> tuple[float, float]:
        lower, upper = bounds
        middle = lower + (upper - lower) / 2
        both = draw(st.sampled_from([bounds, (lower, middle), (middle, upper)]))
        return both if both[1] > both[0] else bounds

    return NumbersDocument(
        features=tuple(chosen),
        bounds=tuple(narrower(features[index].bounds or (0.0, 1.0)) for index in chosen),
        steps=draw(st.sampled_from([1, 2, 256])),
        weights=tuple(draw(st.tuples(*[weights] * width)) for _ in chosen),
    )


@st.composite
def _grids(draw: st.DrawFn, numbers: list[int], class_count: int) -> GridDocument:
    """Draw a grid over some of the numbers, whose cuts are often equal."""
    chosen = draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3, unique=True))
    side = draw(st.integers(2, 4))
    cuts = st.lists(NUMBERS, min_size=side - 1, max_size=side - 1).map(sorted).map(tuple)
    left, labels, lengths = side ** len(chosen), [], []
    while left:
        lengths.append(draw(st.integers(1, left)))
        labels.append(draw(st.integers(0, class_count - 1)))
        left -= lengths[-1]
    return GridDocument(
        features=tuple(chosen),
        cuts=tuple(draw(cuts) for _ in chosen),
        labels=tuple(labels),
        lengths=tuple(lengths),
    )


def _score_cuts(scores: ScoresDocument | None) -> list[float]:
    """Return every cut of the terms of scores."""
    terms = () if scores is None else scores.terms
    cuts = [literal.at_least for term in terms for literal in term.tests]
    return [cut for cut in cuts if cut is not None]


def _cuts(node: NodeDocument | None) -> list[float]:
    """Return every cut of a tree."""
    if node is None:
        return []
    own = [] if node.at_least is None else [node.at_least]
    return [*own, *_cuts(node.true), *_cuts(node.false)]


def _numeric_values(special: list[float]) -> st.SearchStrategy[float | None]:
    """Draw numbers at cuts and bounds, next to them, and anywhere; or none."""
    beside = [math.nextafter(value, way) for value in special for way in (-math.inf, math.inf)]
    known = [*special, *beside, 0.0, -0.0, math.inf, -math.inf]
    inside = st.floats(min(special), max(special))
    return st.one_of(st.sampled_from([*known, 7.5]), inside, st.floats(allow_nan=False), st.none())


def _categorical_values(
    feature: FeatureDocument, missing: tuple[str, ...]
) -> st.SearchStrategy[str | None]:
    known = [*(feature.categories or ()), *missing, ""]
    if feature.kind == "boolean":  # any other text is refused before, or is another spelling
        return st.one_of(st.sampled_from(known), st.none())
    return st.one_of(st.sampled_from([*known, "other"]), TEXTS, st.none())


def published_tree(
    *, release: str, schema: Schema, tests: Sequence[BinaryTest], tree: Tree
) -> PublishedClassifier:
    """Publish a tree over given tests."""
    written = Written(tree=node_document(schema, tests, tree))
    return published_document(release, schema, written=written)
