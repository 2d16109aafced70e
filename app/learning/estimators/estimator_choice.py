"""A scikit-learn classifier named by its import path, checked before private rows are read."""

from __future__ import annotations

import importlib
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from app.errors import ConfigurationError
from app.learning.chunks import silence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

_PRINTING_PARAMETERS = ("verbose", "verbosity")


class Classifier(Protocol):
    """The part of scikit-learn's estimator interface that Conclave uses."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64], /) -> object:
        """Train the estimator on one chunk of rows."""
        ...

    def predict(self, rows: NDArray[np.float64], /) -> NDArray[np.generic]:
        """Return one predicted label per row."""
        ...

    def get_params(self, deep: bool = ...) -> dict[str, object]:  # noqa: FBT001 -- as there
        """Return the estimator's parameters by name; names of nested parameters contain ``__``."""
        ...

    def set_params(self, **params: object) -> object:
        """Set the estimator's parameters by name."""
        ...


def estimator_factory(
    path: str, params: Mapping[str, object], *, section: str = "learner"
) -> Callable[[], Classifier]:
    """Return a function that makes new estimators, after checking the configured choice.

    Args:
        path: the import path, ``package.module.Class`` or ``package.module:Class``.
        params: the keyword arguments of the class.
        section: the section of the configuration that has the path and the arguments.

    Raises:
        ConfigurationError: the path cannot be imported, the class is not a classifier, or it does
            not accept the parameters.

    """
    module_name, _, class_name = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except Exception as error:
        raise ConfigurationError(f"{section}.estimator", f"{path} cannot be imported") from error
    if not (isinstance(found, type) and _is_classifier_type(found)):
        raise ConfigurationError(f"{section}.estimator", f"{path} is no scikit-learn classifier")

    make = partial(_made, found, dict(params))
    _check_parameters(make, path, section)
    return make


def _made(found: Callable[..., object], params: Mapping[str, object]) -> Classifier:
    """Make one; its parameters are copied, so that one which changes a list changes no other's."""
    return cast("Classifier", found(**deepcopy(params)))


def _is_classifier_type(found: type) -> bool:
    """Tell whether instances offer fit, predict and parameters, and say they classify."""
    names = ("fit", "predict", "get_params", "set_params")
    return all(callable(getattr(found, name, None)) for name in names)


def _check_parameters(make: Callable[[], Classifier], path: str, section: str) -> None:
    """Construct one, and let scikit-learn check public parameters before any row is read."""
    base = importlib.import_module("sklearn.base")
    try:
        # In silence like every fit: the same words come again with each of them.
        with silence():
            model = make()
            if hasattr(model, "_parameter_constraints"):
                model._validate_params()  # type: ignore[attr-defined]  # noqa: SLF001 -- no public name
    except Exception as error:
        said = " ".join(str(error).split())
        raise ConfigurationError(f"{section}.params", f"{path}: {said}") from error
    _refuse_printing(model, section)
    if not base.is_classifier(model):
        raise ConfigurationError(f"{section}.estimator", f"{path} is no scikit-learn classifier")


def _refuse_printing(model: Classifier, section: str) -> None:
    """Refuse an estimator with verbose output, because its rows may be private."""
    for name, value in model.get_params(deep=True).items():
        is_loud = isinstance(value, int | float) and value > 0
        if name.rpartition("__")[2] in _PRINTING_PARAMETERS and is_loud:
            problem = f"{name} would print what private rows give; leave it out"
            if section != "learner":
                problem = f"{name} would print what the queries give; leave it out"
            raise ConfigurationError(f"{section}.params", problem)
