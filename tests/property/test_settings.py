"""Whatever a configuration holds, it is taken or refused in one line."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from app.errors import ConfigurationError
from app.settings import toml_and_environment
from app.settings.settings import SECTIONS, Settings, demo_settings
from tests.builders.schema.configurations import RIGHT

SCHEMAS = Settings.model_json_schema(mode="validation")
SECTION_KEYS = [
    (section, key)
    for section in sorted(SECTIONS)
    for key in SCHEMAS["$defs"][f"{section.capitalize()}Settings"]["properties"]
]
FEATURE_KEYS = ["name", "kind", "bounds", "thresholds", "threshold_shares", "categories"]
NUMBERS = st.integers() | st.floats() | st.booleans()
WORDS = st.sampled_from(["age", "workclass", "income", "?", "", "trees", "numeric", "a\nb"])
EXACT = NUMBERS.map(lambda number: Decimal(number) if isinstance(number, float) else number)
VALUES = st.recursive(
    EXACT | WORDS | st.text(max_size=5) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def _json(value: object) -> str:
    """Write a value as an operator would in the environment."""
    return json.dumps(value, default=str)


@given(st.sampled_from(SECTION_KEYS), VALUES)
def test_any_value_of_any_key_is_taken_or_refused(keys: tuple[str, str], value: object) -> None:
    """There is no third outcome, and a refusal is one line that starts with a key."""
    tables = tomllib.loads(RIGHT, parse_float=Decimal)
    tables["ledger"] = {"url": "sqlite:///ledger.db"}
    _take_or_refuse(toml_and_environment.overlay(tables, [(keys, value)]))


@given(st.sampled_from(FEATURE_KEYS), VALUES)
def test_any_value_in_a_feature_is_taken_or_refused(key: str, value: object) -> None:
    """What is wrong within a list of tables is one line too."""
    tables = tomllib.loads(RIGHT, parse_float=Decimal)
    tables["ledger"] = {"url": "sqlite:///ledger.db"}
    tables["data"]["features"][0][key] = value
    _take_or_refuse(tables)


@given(VALUES)
def test_any_features_are_taken_or_refused(value: object) -> None:
    """A list of anything but tables is refused like the rest."""
    tables = tomllib.loads(RIGHT, parse_float=Decimal)
    tables["ledger"] = {"url": "sqlite:///ledger.db"}
    tables["data"]["features"] = [value]
    _take_or_refuse(tables)


@given(st.sampled_from(SECTION_KEYS), st.text(max_size=12) | VALUES.map(_json))
def test_any_environment_is_taken_or_refused(keys: tuple[str, str], text: str) -> None:
    """The environment is as free as the file."""
    name = f"CONCLAVE_{keys[0].upper()}__{keys[1].upper()}"
    try:
        demo_settings({name: text})
    except ConfigurationError as refused:
        _check_line(refused)


def _take_or_refuse(tables: dict[str, object]) -> None:
    """Validate tables; nothing but a refusal in one line may be raised."""
    try:
        Settings.read(tables)
    except ConfigurationError as refused:
        _check_line(refused)


def _check_line(refused: ConfigurationError) -> None:
    """A refusal has a key, a problem and no line break."""
    assert refused.key
    assert refused.problem
    assert len(str(refused).splitlines()) == 1
