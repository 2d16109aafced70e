"""Tables whose promise is proved by machine are tables of the server, to the byte."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.privacy.stability.certified import certified_table
from app.privacy.stability.certified.certified_table import CertifiedTable
from app.privacy.stability.hit_table import ProfileTable, calibrate, check
from proofs.certificate import read_table, write_certificate
from tests.tidy.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CERTIFIED_TABLES = sorted((ROOT / "proofs" / "certified_tables").glob("*.json"))
TABLES = sorted((ROOT / "proofs" / "tables").glob("*.json"))


def test_there_are_tables() -> None:
    """Two tables of either calibration at least are proved."""
    assert min(len(TABLES), len(CERTIFIED_TABLES)) >= 2


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_proved_table_is_one_that_would_serve(path: Path) -> None:
    """The server's own check accepts a proved table, and would keep it in the same bytes."""
    table = ProfileTable.from_plain(json.loads(path.read_bytes()))
    check(table)
    assert msgspec.json.encode(table.to_plain()) == path.read_bytes()


@pytest.mark.parametrize("path", CERTIFIED_TABLES, ids=lambda path: path.stem)
def test_a_proved_certificate_is_one_that_would_serve(path: Path) -> None:
    """The server's own check accepts a proved certificate, and would keep it in the same bytes."""
    table = CertifiedTable.from_plain(json.loads(path.read_bytes()))
    certified_table.check(table)
    assert msgspec.json.encode(table.to_plain()) == path.read_bytes()


def test_a_certificate_is_written_at_every_order() -> None:
    """The table that is served for a budget, whose order is no integer, has one too."""
    table = calibrate(epsilon=Fraction(8), delta=Fraction(1, 1000), cutoff=1)
    assert Fraction(table.alpha).denominator > 1
    assert "growth := (" in write_certificate(read_table(json.dumps(table.to_plain())), title="x")


def test_what_a_certificate_rounds_is_rounded_down() -> None:
    """R and c of a certificate are at most what they stand for, and within 128 bits of it."""
    text = write_certificate(read_table(TABLES[0].read_text(encoding="utf-8")), title="table")
    numerator, denominator = text.split("growth := (")[1].split(")")[0].split(", ")
    e = Fraction("2.718281828459045235360287471352662497757247093699959574966")
    assert 0 < e - Fraction(int(numerator), int(denominator)) < Fraction(1, 1 << 127)
