"""The recommended settings as TOML to paste into a configuration, in whole sections."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from app.privacy.budget.composition import Mechanism
from app.privacy.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from fractions import Fraction

    from app.planning.request import PlanRequest
    from app.planning.trial.recommendation import Choice
    from app.settings.settings import Settings

Values = Mapping[str, object]

PLAIN: Final = (str, int, float, Decimal)
HEADING: Final = "# Recommended by conclave plan, in place of these sections of the configuration."
NOTHING: Final = "# Nothing to change: no settings that were tried give more answers."


def settings_toml(settings: Settings, request: PlanRequest | None, choice: Choice | None) -> str:
    """Return each changed section as TOML; only a comment if nothing changes.

    Args:
        settings: the present configuration.
        request: the recommended release, with its epsilon, number m of answers and shares of
            epsilon; None for no recommendation.
        choice: the recommended mechanism, number k of models, cutoff T and shares of epsilon; None
            to keep the present ones.

    """
    sections = {} if request is None else _sections(settings, request, choice)
    written = [f"[{name}]\n{_lines(values)}" for name, values in sections.items() if values]
    return "\n".join([HEADING, *written]) if written else f"{NOTHING}\n"


def _sections(settings: Settings, request: PlanRequest, choice: Choice | None) -> dict[str, Values]:
    privacy: dict[str, object] = {"epsilon": _decimal(request.epsilon)}
    answers: dict[str, object] = {}
    parts = {each.mechanism: each.epsilon / request.epsilon for each in request.charges}
    if request.budget is not None:
        answers["queries"] = request.query_count
    if choice is not None:
        row = MECHANISMS[choice.mechanism]
        parts |= {
            Mechanism.RELABEL: choice.relabel_share,
            Mechanism.ANSWERS: choice.answers_share,
        }
        privacy["calibration"] = row.calibration or settings.privacy.calibration
        joint = request.joint_rows
        may_share = row.may_share_account if joint is None else row.name in joint
        if settings.privacy.accounting == "joint" and not may_share:
            privacy["accounting"] = "sum"
        answers |= {"mechanism": row.mechanism, "ensemble": choice.ensemble_size}
        if choice.cutoff is not None:
            answers["cutoff"] = choice.cutoff
    shares = {name.value: _decimal(share) for name, share in parts.items()}
    return {
        "privacy": _whole(settings.privacy, privacy),
        "privacy.shares": _whole(settings.privacy.shares, shares),
        "answers": _whole(settings.answers, answers),
    }


def _whole(section: object, changed: Values) -> Values:
    """Return a section's own keys with the changes; nothing where all are as they were."""
    if all(getattr(section, key) == value for key, value in changed.items()):
        return {}
    given: set[str] = getattr(section, "model_fields_set", set())
    values = {key: getattr(section, key) for key in sorted(given)} | dict(changed)
    return {key: value for key, value in values.items() if isinstance(value, PLAIN)}


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _lines(values: Values) -> str:
    return "".join(f"{key} = {_text(value)}\n" for key, value in values.items())


def _text(value: object) -> str:
    """Write a value: a JSON string is a TOML one, and decimals have a point or an exponent."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else str(value).lower()
