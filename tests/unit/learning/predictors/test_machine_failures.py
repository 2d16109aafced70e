"""What counts as the machine's failure, however it is wrapped, and what as a learner's."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import MachineError
from app.learning.chunks import fitted_or_none, made_by_machine
from app.learning.predictors.own_predictors import Labels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from app.learning.predictors.own_predictors import Value

BEYOND_EVERY_MACHINE = 1 << 56


class UnspeakableError(Exception):
    """Fails where it is asked for its text.

    Args:
        failure: what it fails with.

    """

    def __init__(self, failure: Exception) -> None:
        """Keep the failure."""
        super().__init__()
        self.failure = failure

    def __str__(self) -> str:
        """Fail."""
        raise self.failure


class Predicts:
    """A predictor that fails on every row.

    Args:
        failure: what it raises.

    """

    def __init__(self, failure: Exception) -> None:
        """Keep the failure."""
        self.failure = failure

    def predict(self, row: Mapping[str, Value]) -> object:
        """Raise it."""
        del row
        raise self.failure

    def describe(self) -> Mapping[str, object]:
        """Return nothing."""
        return {}


def asks_for_too_much() -> object:
    """Ask numpy for more than there is anywhere."""
    return np.empty(BEYOND_EVERY_MACHINE)


def wraps() -> None:
    """Say that something else failed, because of it."""
    try:
        asks_for_too_much()
    except MemoryError as error:
        text = "the fit failed"
        raise ValueError(text) from error


def hides() -> None:
    """Say that something else failed, and not why; twice."""
    try:
        wraps()
    except ValueError:
        text = "the fit failed"
        raise ArithmeticError(text) from None


def raising(error: Exception) -> NoReturn:
    """Raise an error."""
    raise error


MACHINE = [
    MemoryError(),
    FileNotFoundError("model.bin"),
    OSError(28, "No space left on device"),
    TimeoutError(110, "Connection timed out"),
    BrokenProcessPool("a worker was ended"),
    SystemError("returned NULL without setting an exception"),
    RuntimeError("can't start new thread"),
    ImportError("libx.so: failed to map segment from shared object"),
    ValueError("All the 5 fits failed. Below are more details:\nMemoryError"),
    RuntimeError("std::bad_alloc"),
    ExceptionGroup("several", [ValueError("a row"), MemoryError()]),
    UnspeakableError(MemoryError()),
    MachineError(),
]
LEARNERS = [
    ValueError("a row"),
    ArithmeticError(),
    RuntimeError("it did not converge"),
    RecursionError(),
    TimeoutError("the learner's own limit"),
    ExceptionGroup("several", [ValueError("a row")]),
    UnspeakableError(ValueError()),
]


@pytest.mark.parametrize("error", MACHINE, ids=repr)
def test_a_failure_of_the_machine_is_no_missing_model(error: Exception) -> None:
    """Memory, files, threads, libraries and processes: raised with a fixed text."""
    with pytest.raises(MachineError, match=r"^the machine refused memory, a file"):
        fitted_or_none(lambda: raising(error))


@pytest.mark.parametrize("attempt", [asks_for_too_much, wraps, hides])
def test_it_is_known_however_it_is_wrapped(attempt: object) -> None:
    """Where numpy is refused memory, no error that comes of it is taken for the learner's."""
    with pytest.raises(MachineError):
        fitted_or_none(attempt)  # type: ignore[arg-type]  # a function


@pytest.mark.parametrize("error", LEARNERS, ids=repr)
def test_a_failure_of_a_learner_is_nobodys_business(error: Exception) -> None:
    """Whatever else is raised, a time-out of its own included, gives no model and no error."""
    assert fitted_or_none(lambda: raising(error)) is None


def test_what_a_caller_was_handling_is_not_the_learners() -> None:
    """Who asks may be handling an error; what a learner raises then is still the learner's."""
    labels, predictor = Labels(("no", "yes")), Predicts(ValueError("a row"))
    try:
        raising(FileNotFoundError("of the client's"))
    except FileNotFoundError:
        assert fitted_or_none(lambda: raising(ValueError("a row"))) is None
        assert labels.predicted(predictor, {}) == 0
        with pytest.raises(MachineError):
            fitted_or_none(wraps)


def test_a_predictor_gives_no_class_for_the_machine() -> None:
    """Its own failures are class 0, and the machine's are none."""
    labels = Labels(("no", "yes"))
    assert labels.predicted(Predicts(ValueError("a row")), {}) == 0
    with pytest.raises(MachineError):
        labels.predicted(Predicts(MemoryError()), {})


def test_errors_that_cause_each_other_are_looked_at_once() -> None:
    """A circle of causes ends."""
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert not made_by_machine(first)


def test_what_took_the_memory_is_let_go() -> None:
    """The error that is raised keeps no frame alive in which the memory was taken."""
    kept: list[weakref.ref[object]] = []

    class Large:
        """Stands for what took the memory."""

    def fails() -> NoReturn:
        large = Large()
        kept.append(weakref.ref(large))
        raise MemoryError

    try:
        fitted_or_none(fails)
    except MachineError:
        gc.collect()
        assert kept[0]() is None
    else:
        pytest.fail("nothing was raised")
