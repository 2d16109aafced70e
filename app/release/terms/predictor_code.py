"""A user's own predictors as settings name them, and what their code is bound by.

A release is bound to the source file of every module that is named, by its
SHA-256: predictors that changed are other predictors.  What those modules
import in their turn is not looked at.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from app.data.schema import NumericFeature
from app.errors import ConfigurationError
from app.learning.predictors.own_predictors import PublicFeature
from app.learning.predictors.predictor_classes import PredictorSource, is_predictor_kind

if TYPE_CHECKING:
    from app.data.schema import Feature, Schema
    from app.settings.learning_sections import HypothesesSettings
    from app.settings.settings import Settings


def predictor_source(
    section: str, chosen: HypothesesSettings, schema: Schema
) -> PredictorSource | None:
    """Return where the predictors of a class come from; None for any other class.

    Args:
        section: ``hypotheses`` or ``classifier``, which errors name.
        chosen: the class, with what it inherits.
        schema: the public schema.

    """
    if not is_predictor_kind(chosen.kind):
        return None
    return PredictorSource(
        section=section,
        kind=chosen.kind,
        paths=tuple(chosen.predictors),
        features=tuple(_public_feature(feature) for feature in schema.features),
        classes=tuple(schema.classes),
    )


def code_digests(settings: Settings) -> dict[str, str]:
    """Return the digest of every module with predictors, by section and module.

    Raises:
        ConfigurationError: a module is not there to be imported.

    """
    schema = settings.data.public_schema()
    digests: dict[str, str] = {}
    for section, chosen in (
        ("hypotheses", settings.hypotheses),
        ("classifier", settings.published),
    ):
        source = predictor_source(section, chosen, schema)
        for module in source.modules() if source is not None else ():
            digests[f"{section}.code.{module}"] = _digest(f"{section}.class", module)
    return digests


def _public_feature(feature: Feature) -> PublicFeature:
    """Return what a predictor may know of a feature."""
    if isinstance(feature, NumericFeature):
        return PublicFeature(name=feature.name, bounds=(feature.lower, feature.upper))
    return PublicFeature(name=feature.name, categories=feature.categories)


def _digest(key: str, module: str) -> str:
    """Return the SHA-256 of a module's source file; of one without a file, that it has none."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise ConfigurationError(key, f"{module} is not there to be imported: see PYTHONPATH")
    if found.origin is None or not found.has_location:
        return "no source file"
    return f"sha256:{hashlib.sha256(Path(found.origin).read_bytes()).hexdigest()}"
