"""How large is an exported model, and how fast are writing, loading and labelling?

Expected: kilobytes up to depth 5 and two megabytes at depth 16, where no two
subtrees are alike; loading takes tens of milliseconds, and ten thousand rows are
labelled in tens of milliseconds on one core.  The model is then compared with the
server's own predictions on every row.

    python benchmarks/onnx_model.py
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime

from app.data.feature_tests import public_tests
from app.data.schema import NumericFeature, Schema
from app.learning.trees.tree import Tree
from app.release.classifier.onnx.onnx_model import to_onnx
from app.release.classifier.published_classifier import published_document
from app.release.classifier.written_hypotheses import Written, node_document
from benchmarks.measuring.circumstances import circumstances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.release.classifier.published_classifier import PublishedClassifier

DEPTHS = (3, 5, 10, 16)
FEATURE_COUNT = 8
BINS = 16
ROW_COUNT = 10_000
SEED = 4


def main() -> None:
    """Print a row for each depth of a random tree over eight numbers and three classes."""
    print(f"{circumstances()}; trees and rows: seed {SEED}")
    print(
        f"{'depth':>5} {'JSON bytes':>11} {'ONNX bytes':>11} {'write':>9} {'load':>9} {'label':>9}"
    )
    generator = np.random.default_rng(SEED)
    for depth in DEPTHS:
        _measure(depth, _random_tree(depth, generator), generator.uniform(size=(ROW_COUNT, 8)))


def _random_tree(depth: int, generator: np.random.Generator) -> PublishedClassifier:
    """Publish a full tree of uniform tests and labels."""
    features = tuple(
        NumericFeature(name=f"x{index}", lower=0.0, upper=1.0) for index in range(FEATURE_COUNT)
    )
    schema = Schema(label="y", classes=("a", "b", "c"), features=features)
    tests = public_tests(schema, bins=BINS)
    tree = Tree(
        test_indices=tuple(generator.integers(0, len(tests), 2**depth - 1).tolist()),
        leaf_labels=tuple(generator.integers(0, 3, 2**depth).tolist()),
    )
    written = Written(tree=node_document(schema, tests, tree))
    return published_document("benchmark", schema, written=written)


def _measure(depth: int, classifier: PublishedClassifier, rows: NDArray[np.float64]) -> None:
    started = time.perf_counter()
    model = to_onnx(classifier.document)
    written = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    loaded = time.perf_counter()
    (labels,) = session.run(None, {"features": rows})
    labelled = time.perf_counter()
    seconds = (written - started, loaded - written, labelled - loaded)
    times = " ".join(f"{1000 * each:>6.0f} ms" for each in seconds)
    print(f"{depth:>5} {len(classifier.json):>11,} {len(model):>11,} {times}")
    differing = sum(
        label != classifier.predict(tuple(row))
        for label, row in zip(labels, rows.tolist(), strict=True)
    )
    if differing:
        raise SystemExit(f"{differing} of {len(rows)} labels differ")


if __name__ == "__main__":
    main()
