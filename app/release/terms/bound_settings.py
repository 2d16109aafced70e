"""The permanent parameters of a release: every public setting, as text by name.

The ledger's first entry contains these parameters. A restart compares them one by one and names the
first that differs.

A release is also bound to the source file of every module with user-written predictors that its
settings name: if the file's SHA-256 has changed, a restart is refused. Modules that these modules
import are not compared.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from app.data.schema import NumericFeature
from app.errors import ConfigurationError, ReleaseMismatchError
from app.learning.predictors.own_predictors import PublicFeature
from app.learning.predictors.predictor_classes import PredictorSource, is_predictor_kind
from app.ledger.entries.fold import ACCOUNTING, DELTA_KEY, EPSILON_KEY, LEARNER
from app.privacy.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from app.data.schema import Feature, Schema
    from app.settings.learning_sections import HypothesesSettings
    from app.settings.release_sections import DeltaMechanism
    from app.settings.settings import Settings


CODE_PATH: Final = "hypotheses.path"


def predictor_source(
    section: str, chosen: HypothesesSettings, schema: Schema
) -> PredictorSource | None:
    """Return the source code of a class of user-written predictors; None for any other class.

    After this call, Python searches for modules in the predictors' folder too.

    Args:
        section: the section ``hypotheses`` or ``classifier``, which errors name.
        chosen: the settings of the hypothesis class; ``[classifier]`` takes from ``[hypotheses]``
            what it does not set.
        schema: the public schema.

    Raises:
        ConfigurationError: the folder does not exist.

    """
    if not is_predictor_kind(chosen.kind):
        return None
    if chosen.path is not None:
        _search(chosen.path)
    return PredictorSource(
        section=section,
        kind=chosen.kind,
        paths=tuple(chosen.predictors),
        features=tuple(_public_feature(feature) for feature in schema.features),
        classes=tuple(schema.classes),
    )


def code_digests(settings: Settings) -> dict[str, str]:
    """Return the hash of every module with user-written predictors, by name.

    Raises:
        ConfigurationError: a module cannot be found.

    """
    schema = settings.data.public_schema()
    digests: dict[str, str] = {}
    for section, chosen in (
        ("hypotheses", settings.hypotheses),
        ("classifier", settings.published),
    ):
        source = predictor_source(section, chosen, schema)
        for module in source.modules() if source is not None else ():
            digests[f"{section}.code.{module}"] = _digest(f"{section}.class", module, chosen.path)
    return digests


def _search(folder: Path) -> None:
    """Let Python look for modules in a folder too: after all others, none of which it hides."""
    if not folder.is_dir():
        raise ConfigurationError(CODE_PATH, f"{folder} is no folder")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _public_feature(feature: Feature) -> PublicFeature:
    """Return what a predictor may know of a feature."""
    if isinstance(feature, NumericFeature):
        return PublicFeature(name=feature.name, bounds=(feature.lower, feature.upper))
    return PublicFeature(name=feature.name, categories=feature.categories)


def _digest(key: str, module: str, folder: Path | None) -> str:
    """Return the SHA-256 of a module's source file; of one without a file, that it has none."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise ConfigurationError(key, f"{module} is not there to be imported: see hypotheses.path")
    if folder is not None and _is_hidden(module, folder, found):
        problem = f"{module} is the name of another module too; give the one in {folder} another"
        raise ConfigurationError(key, problem)
    if found.origin is None or not found.has_location:
        return "no source file"
    return f"sha256:{hashlib.sha256(Path(found.origin).read_bytes()).hexdigest()}"


def _is_hidden(module: str, folder: Path, found: ModuleSpec) -> bool:
    """Return whether Python finds a module elsewhere that lies in the folder."""
    name = module.partition(".")[0]
    if not ((folder / name).is_dir() or (folder / f"{name}.py").is_file()):
        return False
    place = found.origin if found.has_location else None
    return place is None or not Path(place).resolve().is_relative_to(folder.resolve())


UNBOUND: Final = frozenset(
    {
        # Where code is; its digests bind it.
        CODE_PATH,
        # Where rows, entries and clients are; the fingerprint binds the rows.
        "data.source",
        "data.query",
        "data.separator",
        "data.decimal",
        "data.encoding",
        # Bound as what the source holds, not as what is expected of it.
        "data.rows",
        "data.persons",
        "data.dead_features",
        # The first entry says what is in force, which follows it where the setting is absent.
        ACCOUNTING,
        # How long a reply takes.
        "answers.reply_padding_milliseconds",
        "answers.query_seconds_max",
        # Without effect; ledgers of versions where it had one do not bind it either.
        "learner.jobs",
    }
)
# Planning only, but for the calibration that is made from them.
TARGETS: Final = frozenset({"answers.alpha", "answers.beta"})
WANTED: Final = "classifier.wanted"
ERASURE_COUNT: Final = "erasure.count"
# Settings that ledgers opened by earlier versions do not know, with the value that is
# what those versions did: at that value they are left out.
LATER: Final[Mapping[str, str]] = {
    "data.person": "null",
    "data.id": "null",
    "privacy.sampling": "1",
    "hypotheses.grid": '"public"',
    "hypotheses.predictors": "[]",
    "classifier.predictors": "[]",
    "hypotheses.cells": "[]",
    "classifier.cells": "[]",
    "learner.packed": "true",
    "learner.rows_max": "null",
    "student.packed": "true",
    "answers.output": '"label"',
    "answers.precision": "10",
    LEARNER: '"exponential"',
    WANTED: '"labels"',
    "privacy.delta_shares.classifier": "0",
    ERASURE_COUNT: '"secret"',
    "privacy.table": "null",
    EPSILON_KEY: "null",
    DELTA_KEY: "null",
}
RESTORE: Final = "restore it, or give the new release a name of its own"
BOUND_SECTIONS: Final = ("release", "data", "hypotheses", "learner", "privacy", "answers")
DELTA_SHARES: Final[tuple[DeltaMechanism, ...]] = ("answers", "classifier", "statistics")


def bound_parameters(settings: Settings) -> dict[str, str]:
    """Return every permanent setting as canonical text, by its name in the configuration.

    The values in force are recorded, so that a default may be written out in the configuration
    later. A setting that a later version of the program added is recorded only if it differs from
    its default.
    """
    takes_targets = MECHANISMS[settings.privacy.calibration].is_printed
    unbound = UNBOUND if takes_targets else UNBOUND | TARGETS
    bound: dict[str, str] = {}
    for section in BOUND_SECTIONS:
        _flatten(section, getattr(settings, section).model_dump(by_alias=True), bound)
    if settings.generations is not None:  # a release is fixed without it
        _flatten("generations", settings.generations.model_dump(), bound)
        bound[ERASURE_COUNT] = _text(settings.erasure.count)
    # What is published comes from a public grid whatever relabels, and its code from one folder.
    published = settings.published.model_dump(by_alias=True, exclude={"grid", "path"})
    _flatten("classifier", published, bound)
    bound[LEARNER] = _text(settings.classifier.learner)
    bound[WANTED] = _text(settings.classifier.wanted)
    if settings.student_may_follow:
        _flatten("student", settings.taught.model_dump(exclude={"jobs", "rows_max"}), bound)
    if settings.privacy.shares.statistics > 0:  # ledgers of earlier versions had none
        _flatten("statistics", _statistics(settings), bound)
    for name in DELTA_SHARES:
        bound[f"privacy.delta_shares.{name}"] = str(settings.delta_share(name))
    bound |= code_digests(settings)
    return {
        key: text for key, text in bound.items() if key not in unbound and LATER.get(key) != text
    }


def _statistics(settings: Settings) -> Mapping[str, object]:
    """Return what the statistics table is made of, in force."""
    covered = settings.covered
    return {
        **settings.statistics.model_dump(by_alias=True),
        "class": covered.kind,
        "depth": covered.depth,
    }


def check_bound(opened: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raise an error if permanent settings differ from those of the release.

    Raises:
        ReleaseMismatchError: a setting differs; the message names the first one.

    """
    # Absent keys of [classifier] follow the other sections, so those are named first.
    for key in sorted(opened.keys() | given.keys(), key=_inherited_last):
        if opened.get(key) != given.get(key):
            was, is_now = opened.get(key, "absent"), given.get(key, "absent")
            problem = (
                f"the ledger's release was opened with {was}, the configuration says {is_now}; "
                f"{RESTORE}"
            )
            raise ReleaseMismatchError(key, problem)


def _inherited_last(key: str) -> tuple[bool, str]:
    # The learner is inherited from nowhere, and default shares of delta follow it.
    return key.startswith("classifier.") and key not in {LEARNER, WANTED}, key


def _flatten(key: str, value: object, bound: dict[str, str]) -> None:
    """Give every leaf a dotted key; features go by their names, and their order is kept."""
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            _flatten(f"{key}.{name}", member, bound)
    elif key == "data.features" and isinstance(value, tuple | list):
        bound[key] = _text([feature["name"] for feature in value])
        for feature in value:
            _flatten(f"{key}.{feature['name']}", feature, bound)
    else:
        bound[key] = _text(value)


def _text(value: object) -> str:
    return (
        msgspec.json.encode(value, enc_hook=str).decode()
        if not isinstance(value, Decimal)
        else str(Fraction(value))
    )
