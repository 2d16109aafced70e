"""How long does a published model, as an application embeds it, take for a million rows?

Expected, of a processor: half a second for a tree, one for a grid and for a linear, and four
for a kernel score.  Each
learner is given Skin with the whole epsilon; its ONNX model then labels rows drawn between the
public bounds, 10,000 at a time on two threads, and its labels of the first 10,000 are compared
with the server's.  The data set is the one that CONCLAVE_TEST_DATA names.

    python -m benchmarks.embedded_rows [--learners exponential linear kernel grid]
        [--rows 1000000] [--epsilon 1] [--threads 2]
"""

from __future__ import annotations

import os

# As in the command line's programs: threads share regions, not products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from typing import TYPE_CHECKING, Final

import numpy as np
import onnxruntime

from app.noise.system import SystemNoise
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.onnx.onnx_model import to_onnx
from app.release.classifier.published_classifier import draw_published
from app.release.terms.configuration import configure
from benchmarks.learn_curves import settings_of, skin
from benchmarks.measuring.circumstances import circumstances

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART: Final = 10_000
POINTS: Final = 1000
BINS: Final = 8
SEED: Final = 21
LEARNERS: Final = ("exponential", "linear", "kernel", "grid")


def main() -> None:
    """Print a line for each learner."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=LEARNERS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{circumstances()}; {arguments.rows} rows, {arguments.threads} threads")
    print(f"{'learner':>12}{'seconds':>9}{'of processors':>15}")
    rows = np.random.default_rng(SEED).integers(0, 256, (arguments.rows, 3)).astype(np.float64)
    for learner in arguments.learners:
        clock, busy = _measured(learner, rows, arguments.epsilon, arguments.threads)
        print(f"{learner:>12}{clock:9.2f}{busy:15.2f}", flush=True)


def _measured(
    learner: str, rows: NDArray[np.float64], epsilon: float, threads: int
) -> tuple[float, float]:
    """Return the seconds that all rows took, by the clock and of processors."""
    given = skin(argparse.Namespace(points=POINTS, rows=None), np.random.default_rng(SEED))
    configuration = configure(
        settings_of("skin", learner=learner, bins=BINS, epsilon=epsilon, dimension=3)
    )
    draw = classifier_draw(configuration, given.points, row_count=given.rows.count)
    learned = draw_published(configuration, draw, given.rows, SystemNoise())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = to_onnx(learned.document)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    started, busy = time.monotonic(), time.process_time()
    labels = [
        session.run(["label"], {"features": rows[start : start + PART]})[0]
        for start in range(0, len(rows), PART)
    ]
    taken = time.monotonic() - started, time.process_time() - busy
    expected = learned.predict_many([tuple(row) for row in rows[:PART].tolist()])
    if labels[0].tolist() != expected:
        raise SystemExit(f"{learner}: the model predicts otherwise than the server")
    return taken


if __name__ == "__main__":
    main()
