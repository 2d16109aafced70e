"""An exported model gives the very labels of the document, wherever a row lies."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.data.feature_tests import public_tests
from app.data.schema import NumericFeature, Schema
from app.errors import InvariantError, NotExportableError
from app.learning.trees.tree import Tree
from app.release.classifier.classifier_document import (
    FORMAT,
    ClassifierDocument,
    FeatureDocument,
    HalfspaceDocument,
    LevelDocument,
    NodeDocument,
    PredictorDocument,
    StudentDocument,
    read_document,
)
from app.release.classifier.onnx.onnx_model import FITTED, OWN_CODE, TOO_LARGE, output_name, to_onnx
from app.release.classifier.published_classifier import PublishedClassifier
from app.release.classifier.written_hypotheses import Condition
from tests.builders.release.classifier_documents import documents, published_tree, vectors
from tests.builders.release.onnx_models import labels_of, model_labels

ROW_COUNT = 10_000
YES, NO = NodeDocument(label="yes"), NodeDocument(label="no")
AGE = FeatureDocument("age", "numeric", bounds=(0.0, 10.0))
WORK = FeatureDocument("work", "categorical", categories=("a", "b"))


def document(
    *features: FeatureDocument,
    tree: NodeDocument | None = None,
    halfspace: HalfspaceDocument | None = None,
    missing: tuple[str, ...] = ("?",),
) -> ClassifierDocument:
    """Return a document of two classes."""
    return ClassifierDocument(
        format=FORMAT,
        version=1 if tree else 2,
        release="r",
        label="y",
        classes=("no", "yes"),
        missing=missing,
        features=features,
        tree=tree,
        halfspace=halfspace,
    )


def predicted(
    classifier: ClassifierDocument, rows: list[tuple[float | str | None, ...]]
) -> list[str]:
    """Return what the server predicts."""
    published = PublishedClassifier(classifier, b"")
    return [published.predict(row) for row in rows]


@settings(max_examples=100)
@given(st.data())
def test_a_model_predicts_as_its_document(data: st.DataObject) -> None:
    """Trees and halfspaces of any features, at cuts, beside them, clipped, missing or other."""
    classifier = data.draw(st.one_of(documents(), documents(only_numbers=True)))
    rows = data.draw(vectors(classifier))
    model = to_onnx(classifier)
    assert labels_of(model, classifier, rows) == predicted(classifier, rows)
    onnx.checker.check_model(onnx.load_from_string(model), full_check=True)


def test_a_cut_is_not_rounded_to_single_precision() -> None:
    """The numbers around a cut that float32 cannot tell apart fall on their own sides."""
    cut = 0.1
    rows: list[tuple[float | str | None, ...]] = [
        (value,) for value in (math.nextafter(cut, 0.0), cut, math.nextafter(cut, 1.0))
    ]
    assert len({float(np.float32(value)) for (value,) in rows}) == 1
    classifier = document(AGE, tree=NodeDocument(feature=0, at_least=cut, true=YES, false=NO))
    assert model_labels(classifier, rows) == ["no", "yes", "yes"]
    assert predicted(classifier, rows) == ["no", "yes", "yes"]


@pytest.mark.parametrize(
    ("cut", "passes"),
    [
        (-1.0, [True] * 4),
        (0.0, [True] * 4),
        (10.0, [False, False, True, True]),
        (11.0, [False] * 4),
    ],
)
def test_numbers_are_clipped_before_they_are_cut(cut: float, passes: list[bool]) -> None:
    """A cut at the lower bound or below passes every number, one above the upper bound none."""
    rows: list[tuple[float | str | None, ...]] = [(-math.inf,), (-0.0,), (10.0,), (math.inf,)]
    classifier = document(AGE, tree=NodeDocument(feature=0, at_least=cut, true=YES, false=NO))
    assert model_labels(classifier, [*rows, (None,)]) == [
        *("yes" if each else "no" for each in passes),
        "no",
    ]


@pytest.mark.parametrize(
    ("test", "passing"),
    [
        (Condition(category="a"), ["a"]),
        (Condition(category="A"), []),
        (Condition(other=True), ["A", "a ", "c", "é"]),
        (Condition(missing=True), [None, "", "?"]),
    ],
)
def test_strings_are_compared_exactly(test: Condition, passing: list[str | None]) -> None:
    """A category is itself alone, a token or nothing is missing, and whatever is left is other."""
    classifier = document(WORK, tree=NodeDocument(feature=0, true=YES, false=NO, **test))
    rows: list[tuple[float | str | None, ...]]
    rows = [(value,) for value in ("a", "b", "A", "a ", "c", "é", None, "", "?")]
    expected = ["yes" if row[0] in passing else "no" for row in rows]
    assert model_labels(classifier, rows) == expected
    assert predicted(classifier, rows) == expected


def test_halves_are_rounded_to_the_even_step() -> None:
    """Places 0.5, 1.5 and 2.5 are 0, 2 and 2 steps: rounded, not cut off, not up."""
    levels = tuple(LevelDocument(weights=(1,), offset=offset) for offset in (1,))
    halfspace = HalfspaceDocument(features=(0,), bounds=((0.0, 10.0),), steps=10, levels=levels)
    classifier = document(AGE, halfspace=halfspace)
    rows: list[tuple[float | str | None, ...]] = [(0.5,), (1.5,), (2.5,), (math.nan,), (None,)]
    assert model_labels(classifier, rows) == predicted(classifier, rows)
    assert model_labels(classifier, rows) == ["no", "yes", "yes", "no", "no"]
    above_two = msgspec.structs.replace(halfspace, levels=(LevelDocument((1,), 2),))
    assert model_labels(document(AGE, halfspace=above_two), rows) == ["no"] * 5


def test_a_range_next_to_one_is_divided_by() -> None:
    """Nor is a range that a float32 holds as 1, or a bound that it holds as 0, left out."""
    level = LevelDocument(weights=(1,), offset=60_000)
    for (lower, upper), numbers in (
        ((0.0, 1.000_000_01), [60_000.500_2 / 65_536]),
        ((0.0, 0.999_999_98), [60_000.499_8 / 65_536]),
        ((1e-60, 2e-60), [1.5e-60, 1.95e-60]),
    ):
        rows: list[tuple[float | str | None, ...]] = [(number,) for number in numbers]
        halfspace = HalfspaceDocument(
            features=(0,), bounds=((lower, upper),), steps=65_536, levels=(level,)
        )
        classifier = document(AGE, halfspace=halfspace)
        assert model_labels(classifier, rows) == predicted(classifier, rows)


def test_sums_are_exact_beyond_double_precision() -> None:
    """A difference of one step shows in sums beyond 2^53, which doubles would swallow."""
    weight = 2**55 // 10**6 * 2 + 1
    halfspace = HalfspaceDocument(
        features=(0, 1),
        bounds=((0.0, 1e6), (0.0, 1e6)),
        steps=10**6,
        levels=(LevelDocument((weight, 1), weight * 10**6),),
    )
    classifier = document(
        FeatureDocument("a", "numeric", bounds=(0.0, 1e6)),
        FeatureDocument("b", "numeric", bounds=(0.0, 1e6)),
        halfspace=halfspace,
    )
    rows: list[tuple[float | str | None, ...]] = [(1e6, 1.0), (1e6, 0.0), (999_999.0, 1e6)]
    assert model_labels(classifier, rows) == ["yes", "no", "no"]
    assert predicted(classifier, rows) == ["yes", "no", "no"]


@pytest.mark.parametrize("depth", [4, 5, 10])
def test_deep_trees_of_three_classes_agree_on_many_rows(depth: int) -> None:
    """Flowers of three kinds, ten thousand of them, a hundredth with a missing number."""
    generator = np.random.default_rng(depth)
    schema = Schema(
        label="kind",
        classes=("setosa", "versicolor", "virginica"),
        features=tuple(
            NumericFeature(name=name, lower=0.0, upper=8.0)
            for name in ("sepal_length", "sepal_width", "petal_length", "petal_width")
        ),
    )
    tests = public_tests(schema, bins=16)
    tree = Tree(
        test_indices=tuple(generator.integers(0, len(tests), 2**depth - 1).tolist()),
        leaf_labels=tuple(generator.integers(0, 3, 2**depth).tolist()),
    )
    classifier = published_tree(release="iris", schema=schema, tests=tests, tree=tree)
    flowers = generator.uniform(-1.0, 9.0, (ROW_COUNT, 4))
    on_a_cut = generator.random(flowers.shape) < 0.3
    flowers = np.where(on_a_cut, np.round(flowers * 2.0) / 2.0, flowers)
    missing = generator.random(flowers.shape) < 0.01
    rows: list[tuple[float | str | None, ...]] = [
        tuple(None if gone else value for value, gone in zip(row, where, strict=True))
        for row, where in zip(flowers.tolist(), missing.tolist(), strict=True)
    ]
    expected = [classifier.predict(row) for row in rows]
    assert set(expected) == set(schema.classes)
    assert model_labels(classifier.document, rows) == expected


def test_a_model_says_where_it_comes_from() -> None:
    """Inputs, output, versions and metadata are those that the documentation promises."""
    classifier = document(AGE, WORK, tree=NodeDocument(feature=1, other=True, true=YES, false=NO))
    model = onnx.load_from_string(to_onnx(classifier))
    assert (model.ir_version, model.producer_name, model.graph.name) == (8, "conclave", "r")
    assert {each.domain: each.version for each in model.opset_import} == {"": 17, "ai.onnx.ml": 3}
    assert [(each.name, each.type.tensor_type.elem_type) for each in model.graph.input] == [
        ("age", onnx.TensorProto.DOUBLE),
        ("work", onnx.TensorProto.STRING),
    ]
    assert {each.key: each.value for each in model.metadata_props} == {
        "format": "conclave-classifier",
        "version": "1",
        "release": "r",
        "label": "y",
        "classes": '["no","yes"]',
        "missing": '["?"]',
        "features": '[{"name":"age","kind":"numeric","bounds":[0.0,10.0]},'
        '{"name":"work","kind":"categorical","categories":["a","b"]}]',
    }


def test_numbers_alone_are_one_input_of_the_standard_operators() -> None:
    """An all-numeric schema needs no operator of the learning domain."""
    tree = NodeDocument(feature=0, at_least=3.0, true=YES, false=NO)
    model = onnx.load_from_string(to_onnx(document(AGE, tree=tree)))
    assert [each.name for each in model.graph.input] == ["features"]
    assert [each.domain for each in model.opset_import] == [""]


@pytest.mark.parametrize(
    ("names", "output"),
    [(["age"], "label_"), (["label", "label_"], "label__"), (["features"], "label")],
)
def test_an_output_gives_way_to_a_feature_of_its_name(names: list[str], output: str) -> None:
    """Inputs keep their names; the output takes underscores until it is none of them."""
    features = [
        FeatureDocument("label" if name == "age" else name, "categorical", categories=("a",))
        for name in names
    ]
    tree = NodeDocument(feature=0, category="a", true=YES, false=NO)
    classifier = document(*features, tree=tree)
    assert output_name(classifier) == output
    rows: list[tuple[float | str | None, ...]] = [("a",) * len(names), ("b",) * len(names)]
    assert model_labels(classifier, rows) == ["yes", "no"]


def test_the_only_number_may_be_called_label() -> None:
    """With numbers alone no input has a feature's name, and the output keeps its own."""
    named = msgspec.structs.replace(AGE, name="label")
    tree = NodeDocument(feature=0, at_least=3.0, true=YES, false=NO)
    assert output_name(document(named, tree=tree)) == "label"


def test_equal_documents_give_equal_bytes() -> None:
    """A model is a function of its document: written twice, it is the same file."""
    tree = NodeDocument(feature=1, category="b", true=YES, false=NO)
    classifier = document(AGE, WORK, tree=tree, missing=("?", "n/a", "none"))
    again = read_document(msgspec.json.encode(classifier))
    assert to_onnx(classifier) == to_onnx(again)


def test_no_rows_get_no_labels() -> None:
    """An empty batch is answered by an empty one."""
    tree = NodeDocument(feature=1, category="b", true=YES, false=NO)
    assert model_labels(document(AGE, WORK, tree=tree), []) == []


def test_code_is_not_exported() -> None:
    """A predictor of the operator's own is refused, and told to go as JSON."""
    predictor = PredictorDocument(of="finite", description={"function": "rules:always"})
    classifier = msgspec.structs.replace(document(AGE), predictor=predictor)
    with pytest.raises(NotExportableError, match="predicts by code") as refused:
        to_onnx(classifier)
    assert str(refused.value) == OWN_CODE


def test_a_fitted_estimator_is_not_exported() -> None:
    """A student that only its server predicts by is refused; a student that is a tree is not."""
    student = StudentDocument(labelled_queries=3, estimator="sklearn.svm.SVC", otherwise="no")
    with pytest.raises(NotExportableError) as refused:
        to_onnx(msgspec.structs.replace(document(AGE), version=3, student=student))
    assert str(refused.value) == FITTED
    ruled = StudentDocument(labelled_queries=3, rule="canonical")
    tree = document(AGE, tree=NodeDocument(feature=0, at_least=3.0, true=YES, false=NO))
    assert to_onnx(msgspec.structs.replace(tree, student=ruled)) == to_onnx(tree)


def test_sums_that_leave_64_bits_are_refused() -> None:
    """A halfspace whose sums could wrap around is told to go as JSON."""
    levels = (LevelDocument((2**44,), 0),)
    halfspace = HalfspaceDocument(features=(0,), bounds=((0.0, 1.0),), steps=2**19, levels=levels)
    with pytest.raises(NotExportableError) as refused:
        to_onnx(document(AGE, halfspace=halfspace))
    assert str(refused.value) == TOO_LARGE


def test_a_damaged_tree_is_not_exported() -> None:
    """An inner node without a branch breaks an invariant, as it does for a prediction."""
    with pytest.raises(InvariantError, match="two branches"):
        to_onnx(document(AGE, tree=NodeDocument(feature=0, at_least=1.0, true=YES)))


def test_a_large_tree_stays_small() -> None:
    """Sixteen levels over a hundred cuts take two megabytes: equal subtrees are kept once."""
    generator = np.random.default_rng(16)
    schema = Schema(
        label="y", classes=("no", "yes"), features=(NumericFeature(name="x", lower=0, upper=1),)
    )
    tests = public_tests(schema, bins=101)
    depth = 16
    tree = Tree(
        test_indices=tuple(generator.integers(0, len(tests), 2**depth - 1).tolist()),
        leaf_labels=tuple(generator.integers(0, 2, 2**depth).tolist()),
    )
    classifier = published_tree(release="r", schema=schema, tests=tests, tree=tree)
    model = to_onnx(classifier.document)
    assert len(model) < 2.5e6
    rows: list[tuple[float | str | None, ...]] = [(value,) for value in np.linspace(-0.1, 1.1, 997)]
    assert labels_of(model, classifier.document, rows) == [classifier.predict(row) for row in rows]
