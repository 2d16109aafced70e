"""Hypothesis classes of user-written predictors, found by their import path.

The class ``finite`` is a list of functions that map a row to a label. ``package.module:Class`` is a
class that the user wrote, with this interface::

    class Class:
        dimension: int                        # VC dimension, or an upper bound on it
        def __init__(self, features, classes): ...
        def hypotheses(self, points): ...     # a sequence of predictors
        def read(self, description): ...      # a predictor from its description

``features`` are :class:`~app.learning.predictors.own_predictors.PublicFeature` in the order of the
schema, and ``classes`` are the names of the labels. ``points`` are public rows, possibly none, from
which the predictors may be made; the class never gets a private row. A predictor has the methods
``predict(row)`` and ``describe()``.

Errors in this code are refused when the class is made, before a private row is read: every
predictor is then described, and made again from its description.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final, Protocol, cast

from app.errors import ConfigurationError
from app.learning.enumerated.enumerated_class import EnumeratedClass, refuse_size
from app.learning.predictors.own_predictors import (
    DescribedPredictor,
    Labels,
    Predictor,
    Predictors,
    PublicFeature,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.enumerated.hypothesis_list import Description
    from app.learning.predictors.own_predictors import Row

FINITE: Final = "finite"
INTEGER_BITS: Final = 63
DESCRIPTION_CHARACTERS_MAX: Final = 10_000


class PredictorClass(Protocol):
    """The interface of a class of predictors that a user wrote."""

    dimension: int

    def hypotheses(self, points: Sequence[Row], /) -> Sequence[Predictor]:
        """Return the predictors of the class.

        Args:
            points: public rows from which the predictors may be made; may be empty.

        """
        ...

    def read(self, description: Description, /) -> Predictor:
        """Return the predictor that a published description stands for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorSource:
    """The code and arguments of user-written predictors, which are all public.

    Attributes:
        section: the section of the configuration that names the class, for error messages.
        kind: the name of the class: ``finite`` or an import path ``package.module:Class``.
        paths: the import paths of the functions of the class ``finite``.
        features: the public features, in the order of the schema.
        classes: the names of the labels.

    """

    section: str
    kind: str
    paths: tuple[str, ...] = ()
    features: tuple[PublicFeature, ...]
    classes: tuple[str, ...]

    @property
    def is_finite(self) -> bool:
        """Whether the predictors are given as a list of functions (the class ``finite``)."""
        return self.kind == FINITE

    def modules(self) -> tuple[str, ...]:
        """Return the names of the Python modules with the predictors' code, without repeats."""
        paths = self.paths if self.is_finite else (self.kind,)
        return tuple(dict.fromkeys(path.partition(":")[0] for path in paths))


def is_predictor_kind(kind: str) -> bool:
    """Return whether the name of a class is that of user-written predictors."""
    return kind == FINITE or ":" in kind


def predictor_class(
    source: PredictorSource, public_values: NDArray[np.float64] | None = None
) -> EnumeratedClass:
    """Import user-written predictors, and return them as a hypothesis class.

    Args:
        source: the code and arguments of the predictors.
        public_values: feature values of public rows, encoded by the public schema, shape
            ``(rows, features)``, from which a user's class may make its predictors; None for no
            rows.

    Raises:
        ConfigurationError: the code cannot be imported or is wrong; the error names the setting and
            the problem.

    """
    if source.is_finite:
        found = [_finite(source, index) for index in range(len(source.paths))]
        dimension = len(found).bit_length() - 1
    else:
        found, dimension = _custom(source, public_values)
    predictors = Predictors(source.kind, source.features, Labels(source.classes), found)
    return EnumeratedClass(predictors, min(dimension, len(found).bit_length() - 1))


def read_predictor(source: PredictorSource, description: Description) -> Predictor:
    """Return one published predictor, made again from its description.

    Raises:
        ConfigurationError: the code cannot be imported, or refuses the description.

    """
    if source.is_finite:
        path = str(description.get("predictor"))
        return _Function(_callable(f"{source.section}.predictors", path), path)
    return _rebuilt(f"{source.section}.class", source.kind, _instance(source), description)


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of a row as a predictor."""

    function: Callable[[Row], object]
    path: str

    def predict(self, row: Row) -> object:
        """Return the output of the user's function."""
        return self.function(row)

    def describe(self) -> Mapping[str, object]:
        """Return the import path of the function."""
        return {"predictor": self.path}


def _finite(source: PredictorSource, index: int) -> DescribedPredictor:
    """Import one function of a finite class."""
    path = source.paths[index]
    function = _Function(_callable(f"{source.section}.predictors[{index}]", path), path)
    return DescribedPredictor(function, function.describe())


def _custom(
    source: PredictorSource, public_values: NDArray[np.float64] | None
) -> tuple[list[DescribedPredictor], int]:
    """List the predictors of a class of one's own, and its dimension."""
    key, owner = f"{source.section}.class", _instance(source)
    encoded = [] if public_values is None else public_values.tolist()
    points = [row_of(source.features, row) for row in encoded]
    with _refusing(key, f"{source.kind}.hypotheses"):
        listed = owner.hypotheses(points)
        count = len(listed)
    if not count:
        raise ConfigurationError(key, f"{source.kind}.hypotheses returns no predictor")
    refuse_size(count, f"predictors of {source.kind}")
    dimension = owner.dimension
    if type(dimension) is not int or dimension < 0:
        raise ConfigurationError(key, f"{source.kind}.dimension must be a whole number, 0 or more")
    return [_described(key, source.kind, owner, predictor) for predictor in listed], dimension


def _described(
    key: str, path: str, owner: PredictorClass, predictor: Predictor
) -> DescribedPredictor:
    """Describe a predictor, and make sure that it can be rebuilt from that."""
    if not callable(getattr(predictor, "predict", None)):
        raise ConfigurationError(key, f"a predictor of {path} has no predict(row)")
    with _refusing(key, f"describe() of a predictor of {path}"):
        description = _described_plainly(predictor.describe())
    _rebuilt(key, path, owner, description)
    return DescribedPredictor(predictor, description)


def _described_plainly(said: object) -> Description:
    """Return a description as it would come back from JSON.

    Raises:
        TypeError: it holds something else than plain values, or too much.

    """
    plain = _plain(said)
    if not isinstance(plain, dict):
        raise TypeError("it must be a mapping")
    if len(repr(plain)) > DESCRIPTION_CHARACTERS_MAX:
        raise TypeError(f"it is longer than {DESCRIPTION_CHARACTERS_MAX} characters")
    return plain


def _plain(value: object) -> object:
    """Return plain values with lists and dictionaries only."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < 1 << INTEGER_BITS:
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {str(name): _plain(item) for name, item in value.items()}
    raise TypeError(f"{type(value).__name__} is no plain value of ordinary size")


def _rebuilt(key: str, path: str, owner: PredictorClass, description: Description) -> Predictor:
    """Rebuild a predictor from its description."""
    with _refusing(key, f"{path}.read"):
        predictor = owner.read(description)
    if not callable(getattr(predictor, "predict", None)):
        raise ConfigurationError(key, f"{path}.read must return a predictor")
    return predictor


def _instance(source: PredictorSource) -> PredictorClass:
    """Import and make a class of one's own."""
    key = f"{source.section}.class"
    make = _callable(key, source.kind)
    with _refusing(key, source.kind):
        made = make(source.features, source.classes)
    for name in ("hypotheses", "read"):
        if not callable(getattr(made, name, None)):
            raise ConfigurationError(key, f"{source.kind} has no {name}()")
    if not hasattr(made, "dimension"):
        raise ConfigurationError(key, f"{source.kind} has no dimension")
    return cast("PredictorClass", made)


def _callable(key: str, path: str) -> Callable[..., object]:
    """Import what a path names."""
    module_name, _, name = path.partition(":")
    with _refusing(key, f"importing {path}"):
        found = getattr(importlib.import_module(module_name), name)
    if not callable(found):
        raise ConfigurationError(key, f"{path} cannot be called")
    return cast("Callable[..., object]", found)


@contextmanager
def _refusing(key: str, what: str) -> Iterator[None]:
    """Refuse a failure of a user's own code in one line; nothing private is at hand yet."""
    try:
        yield
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigurationError(key, f"{what} failed: {said}") from error
