"""Conversion between the estimator's parameters and the tables of a configuration.

Most parameters correspond to one setting with another name, as listed in :data:`PARAMETERS`. A
configuration has further settings: :func:`parameters_of` keeps these as tables in one parameter,
and :func:`tables_of` adds the values of the other parameters to these tables.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from app.data.schema import CategoricalFeature, NumericFeature
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.estimator.frame_columns import Columns
    from app.settings.settings import Settings

    Tables = dict[str, dict[str, Any]]

PARAMETERS: Final = {
    "privacy.epsilon": "epsilon",
    "privacy.delta": "delta",
    "privacy.calibration": "calibration",
    "answers.queries": "queries",
    "answers.cutoff": "cutoff",
    "answers.ensemble": "ensemble",
    "answers.mechanism": "mechanism",
    "answers.after": "after",
    "answers.on_cutoff": "on_cutoff",
    "answers.output": "output",
    "answers.precision": "precision",
    "hypotheses.class": "hypotheses",
    "hypotheses.depth": "depth",
    "hypotheses.bins": "bins",
    "learner.params": "learner_params",
    "classifier.learner": "classifier_learner",
    "classifier.wanted": "wanted",
}
"""The parameter that each of these settings is."""
EXPRESSED: Final = {
    "privacy.shares": "shares",
    "answers.unstable": "unstable_label",
    "learner.rule": "learner",
    "learner.estimator": "learner",
}
"""The parameter that says what these settings say, in a form of its own."""
PARAMETER_OF_KEY: Final = {
    **PARAMETERS,
    **EXPRESSED,
    "hypotheses": "hypotheses",
    "classifier.depth": "depth",
    "data.classes": "classes",
}
SHARES: Final = "privacy.shares"
FEATURE: Final = re.compile(r"data\.features\[(\d+)\](?: \(\".*?\"\))?\.")
NUMBERS: Final = frozenset({"epsilon", "delta"})
UNUSED: Final = ("ledger", "server", "logs", "telemetry")
OF_DATA: Final = ("label", "person", "missing")
OF_FEATURES: Final = ("name", "thresholds", "threshold_shares", "category_shares")
GROUPS: Final = "groups"
LABEL: Final = "label"
ABSTAIN: Final = "abstain"
SEQUELS: Final = ("classifier", "halt")
RULES: Final = ("canonical", "halving")
SOURCE: Final = "in-memory"
NO_LEDGER: Final = "sqlite:///no-ledger.db"
KINDS: Final = (NumericFeature.kind, CategoricalFeature.kind)
NO_SUCH_KIND: Final = "the estimator takes numbers and categories, and no {kind}"
NO_STATISTICS: Final = "the estimator has no statistics; set it to 0"


def tables_of(
    parameters: Mapping[str, Any],
    columns: Columns,
    *,
    classes: Sequence[str],
    of_persons: bool = False,
) -> dict[str, object]:
    """Return the configuration tables that correspond to the estimator's parameters.

    Args:
        parameters: the estimator's parameters, by name.
        columns: the public columns of the rows.
        classes: the names of the public labels, sorted as the labels are.
        of_persons: whether the unit of privacy is a person.

    Raises:
        ConfigurationError: ``after`` or ``on_cutoff`` has a value for which a ledger is needed.

    """
    base: Mapping[str, Mapping[str, Any]] = parameters["configuration"] or {}
    _refuse_sequels(parameters)
    tables: Tables = {
        "release": {"name": "estimator"},
        **{name: dict(table) for name, table in base.items()},
    }
    for key, name in PARAMETERS.items():
        section, setting = key.split(".")
        table, value = tables.setdefault(section, {}), parameters[name]
        if value is not None:
            table[setting] = _exact(value) if name in NUMBERS else value
    is_rule = parameters["learner"] in RULES
    tables["learner"]["rule" if is_rule else "estimator"] = parameters["learner"]
    if parameters["shares"] is not None:
        exact = {name: _exact(share) for name, share in parameters["shares"].items()}
        tables["privacy"]["shares"] = {"relabel": 0, "answers": 0, "classifier": 0, **exact}
    tables["answers"]["unstable"] = "coin" if parameters["unstable_label"] is None else ABSTAIN
    tables["data"] = _data(base.get("data", {}), columns, classes, of_persons=of_persons)
    tables["ledger"] = {"url": NO_LEDGER}
    return dict(tables)


def parameters_of(settings: Settings) -> dict[str, Any]:
    """Return the estimator's parameters that correspond to a server's configuration.

    Raises:
        ConfigurationError: the estimator does not support a setting; the error names the setting.

    """
    if settings.privacy.shares.statistics > 0:
        raise ConfigurationError(f"{SHARES}.statistics", NO_STATISTICS)
    for place, feature in enumerate(settings.data.features):
        if feature.kind not in KINDS:
            problem = NO_SUCH_KIND.format(kind=feature.kind)
            raise ConfigurationError(f"data.features[{place}].kind", problem)
    whole = settings.model_dump(by_alias=True)
    found: dict[str, Any] = {}
    for key, name in PARAMETERS.items():
        section, setting = key.split(".")
        value = whole[section][setting]
        found[name] = float(value) if name in NUMBERS else value
    _refuse_sequels(found)
    found["precision"] = settings.answers.precision if settings.answers.output == "score" else None
    found["learner_params"] = dict(settings.learner.params) or None
    found["learner"] = settings.learner.estimator or settings.learner.rule
    shares = whole["privacy"]["shares"].items()
    found["shares"] = {name: float(share) for name, share in shares if share}
    classes = list(settings.data.classes)
    found["unstable_label"] = _unstable_label(settings, classes)
    bounds, categories = _public_columns(settings)
    return {
        **found,
        "classes": classes,
        "bounds": bounds,
        "categories": categories or None,
        "configuration": _remaining(settings),
    }


def feature_names(configuration: Mapping[str, Any] | None) -> list[str] | None:
    """Return the names of the configured features, in order; None without a configuration."""
    if configuration is None:
        return None
    return [feature["name"] for feature in configuration["data"]["features"]]


def missing_tokens(configuration: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the configured texts that stand for a missing value."""
    return frozenset() if configuration is None else frozenset(configuration["data"]["missing"])


def names_persons(configuration: Mapping[str, Any] | None) -> bool:
    """Return whether the configured unit of privacy is a person."""
    return configuration is not None and "person" in configuration["data"]


def parameter_line(refused: ConfigurationError, names: Sequence[str]) -> str:
    """Return an error text with the estimator's parameter in place of the setting's name."""
    key = refused.key
    feature = FEATURE.match(key)
    if feature is not None:
        member, problem = key[feature.end() :], FEATURE.sub("", refused.problem)
        return f"{member} of {names[int(feature[1])]!r}: {problem}"
    if key.startswith(SHARES):
        key = SHARES
    problem = refused.problem.replace("data.person names", f"{GROUPS} name")
    return f"{PARAMETER_OF_KEY.get(key, key)}: {problem}"


def _refuse_sequels(parameters: Mapping[str, Any]) -> None:
    """Refuse what follows the ensemble and needs a ledger."""
    for name in ("after", "on_cutoff"):
        if parameters[name] not in SEQUELS:
            problem = f"must be one of {', '.join(SEQUELS)}"
            raise ConfigurationError(f"answers.{name}", problem)


def _data(
    base: Mapping[str, Any], columns: Columns, classes: Sequence[str], *, of_persons: bool
) -> dict[str, Any]:
    """Return the public schema: the columns, and what a configuration says besides of them."""
    described = {feature["name"]: feature for feature in base.get("features", ())}
    data: dict[str, Any] = {
        "source": SOURCE,
        "label": _unlike(base.get("label", LABEL), columns.names),
        "classes": list(classes),
        "features": [
            {**described.get(str(table["name"]), {}), **table} for table in columns.tables()
        ],
        "missing": base.get("missing", ()),
    }
    if of_persons:
        data["person"] = _unlike(GROUPS, [*columns.names, data["label"]])
    return data


def _remaining(settings: Settings) -> Tables:
    """Return the tables of what no parameter says."""
    written = settings.model_dump(by_alias=True, exclude_unset=True, exclude={*UNUSED, "data"})
    for key in (*PARAMETERS, *EXPRESSED):
        section, setting = key.split(".")
        written.get(section, {}).pop(setting, None)
    data = settings.data.model_dump(include=set(OF_DATA), exclude_none=True)
    data["features"] = [
        feature.model_dump(include=set(OF_FEATURES), exclude_none=True)
        for feature in settings.data.features
    ]
    return {**written, "data": data}


def _public_columns(
    settings: Settings,
) -> tuple[dict[str, tuple[float, float]], dict[str, list[str]]]:
    """Return bounds and categories by the names of features."""
    bounds: dict[str, tuple[float, float]] = {}
    categories: dict[str, list[str]] = {}
    for feature in settings.data.public_schema().features:
        if isinstance(feature, NumericFeature):
            bounds[feature.name] = feature.lower, feature.upper
        elif isinstance(feature, CategoricalFeature):
            categories[feature.name] = list(feature.categories)
    return bounds, categories


def _unstable_label(settings: Settings, classes: Sequence[str]) -> str | None:
    """Return the label of an unstable answer: a coin's, or one that is no class."""
    return None if settings.answers.unstable == "coin" else _unlike(ABSTAIN, classes)


def _unlike(name: str, others: Sequence[str]) -> str:
    """Return a name, with underscores until it is none of others."""
    while name in others:
        name += "_"
    return name


def _exact(number: object) -> Decimal:
    """Return a number of a parameter as the decimal that it is written as."""
    return Decimal(repr(float(number)))  # type: ignore[arg-type]  # a parameter's
