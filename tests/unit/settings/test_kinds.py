"""Booleans, dates and dialects in a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.data.sources.csv_dialect import PLAIN_CSV, CsvDialect
from app.release.terms.bound_settings import bound_parameters
from app.settings.settings import load_settings
from tests.builders.schema.configurations import spoil, write

if TYPE_CHECKING:
    from pathlib import Path

DIALECT = 'separator = ";"\ndecimal = ","\nencoding = "Latin-1"\n'


@pytest.mark.parametrize("quote", ['"', ""])
def test_kinds_become_the_public_schema(tmp_path: Path, quote: str) -> None:
    """A date is a text or a date of TOML; what binds a release has it as text."""
    first, cut, last = (
        f"{quote}{each}{quote}" for each in ("1900-01-01", "1970-01-02", "2026-12-31")
    )
    kinds = (
        f'[[data.features]]\nname = "born"\nkind = "date"\nbounds = [{first}, {last}]\n'
        f'thresholds = [{cut}]\n[[data.features]]\nname = "member"\nkind = "boolean"\n'
        f"true_share = 0.25\n[hypotheses]\ntests = {{ born = [{cut}] }}\n"
    )
    settings = load_settings(write(tmp_path, spoil("[hypotheses]\n", kinds)), {})
    born, member = settings.data.public_schema().features[2:]
    assert settings.hypotheses.tests == {"born": ("1970-01-02",)}
    assert settings.data.grids()["born"] == (1.0,)
    assert born.canonical() == {
        "name": "born",
        "kind": "date",
        "bounds": ["1900-01-01", "2026-12-31"],
        "thresholds": ["1970-01-02"],
        "threshold_shares": [],
    }
    assert member.canonical() == {
        "name": "member",
        "kind": "boolean",
        "categories": ["false", "true"],
        "category_shares": ["0.75", "0.25"],
    }


def test_a_dialect_is_read_and_binds_nothing(tmp_path: Path) -> None:
    """How a file is written says nothing of its rows, which the fingerprint binds."""
    plain = load_settings(write(tmp_path), {})
    german = load_settings(write(tmp_path, spoil("rows = 32561\n", f"rows = 32561\n{DIALECT}")), {})
    assert plain.data.dialect == PLAIN_CSV
    assert german.data.dialect == CsvDialect(";", ",", "iso8859-1")
    assert bound_parameters(german) == bound_parameters(plain)
