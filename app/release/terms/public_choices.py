"""What settings alone fix: charges, hypothesis classes, and what is known at all."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.data.cell_tests import read_splits
from app.data.schema_columns import public_columns
from app.data.tests import classifier_tests, public_tests
from app.errors import ConfigurationError
from app.learning.predictors.predictor_classes import is_predictor_kind
from app.learning.registry import CELLS, KINDS, hypothesis_class
from app.privacy.budget.composition import Charge, Mechanism, Shares, charges
from app.release.terms.predictor_code import predictor_source
from app.release.terms.work_limits import naming_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.hypothesis import HypothesisClass
    from app.settings.learning_sections import HypothesesSettings
    from app.settings.settings import Settings

TAKING_EVERY_TEST: Final = ("trees", "stumps")


def charges_by_mechanism(settings: Settings) -> dict[Mechanism, Charge]:
    """Return what each mechanism with a share is charged, exactly."""
    privacy = settings.privacy
    shares = {name: Fraction(share) for name, share in privacy.shares.model_dump().items()}
    if not shares["answers"]:
        shares["relabel"] = Fraction(0)  # only the ensemble's rows are relabelled
    divided = charges(
        epsilon=Fraction(privacy.epsilon),
        delta=Fraction(privacy.delta),
        shares=Shares(**shares),
        delta_shares=Shares(
            answers=settings.delta_share("answers"),
            classifier=settings.delta_share("classifier"),
            statistics=settings.delta_share("statistics"),
        ),
    )
    return {charge.mechanism: charge for charge in divided}


def public_class(settings: Settings) -> HypothesisClass:
    """Return the class of ``[hypotheses]``: what relabels, and what learners search."""
    section = settings.hypotheses
    schema = settings.data.public_schema()
    tests = public_tests(schema, bins=section.bins, listed=section.tests)
    return _class_over(settings, "hypotheses", section, tests)


def published_class(settings: Settings, public_values: NDArray[np.float64]) -> HypothesisClass:
    """Return the class of ``[classifier]``, as the public points fix it.

    Args:
        settings: the whole configuration.
        public_values: encoded public points, shape (m, d); m may be 0.

    """
    section = settings.published
    tests = published_tests(settings, public_values, for_trees=section.kind in TAKING_EVERY_TEST)
    hypotheses = _class_over(settings, "classifier", section, tests, public_values=public_values)
    return hypotheses.restricted_to(hypotheses.encode(public_values))


def published_tests(
    settings: Settings, public_values: NDArray[np.float64], *, for_trees: bool
) -> tuple[BinaryTest, ...]:
    """Return the tests of ``[classifier]``, as the public points fix them.

    Args:
        settings: the whole configuration.
        public_values: encoded public points, shape (m, d); m may be 0.
        for_trees: whether what is learned takes every test.

    """
    section = settings.published
    return classifier_tests(
        settings.data.public_schema(),
        bins=section.bins,
        listed=section.tests,
        public_values=public_values,
        for_trees=for_trees,
    )


def refuse_unknown(settings: Settings) -> None:
    """Refuse what is valid configuration but unknown to this version.

    Args:
        settings: the whole configuration.

    Raises:
        ConfigurationError: names the setting and what is known instead.

    """
    for key, value, known in (
        ("hypotheses.class", settings.hypotheses.kind, KINDS),
        ("classifier.class", settings.published.kind, KINDS),
    ):
        if value not in known and not is_predictor_kind(value):
            choices = ", ".join(f'"{name}"' for name in known)
            problem = f'"{value}" is not served by this version; it serves {choices}'
            raise ConfigurationError(key, problem)


def _class_over(
    settings: Settings,
    name: str,
    section: HypothesesSettings,
    tests: Sequence[BinaryTest],
    *,
    public_values: NDArray[np.float64] | None = None,
) -> HypothesisClass:
    """Return the class of a section, by its name, over public tests and points."""
    schema = settings.data.public_schema()
    with naming_section(name):
        return hypothesis_class(
            section.kind,
            tests,
            depth=section.depth,
            class_count=len(settings.data.classes),
            columns=public_columns(schema),
            predictors=predictor_source(name, section, schema),
            splits=(
                read_splits(schema, section.cells, section=name) if section.kind == CELLS else None
            ),
            public_values=public_values,
        )
