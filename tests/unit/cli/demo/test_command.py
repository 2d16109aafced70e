"""The demo's settings: its ledgers are deleted, and nothing else of an operator's is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli.demo.command import _comparison_settings, _demo_settings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_demo_notes_nothing_in_the_head_file_of_another_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note of what is deleted would refuse every later start that keeps the same file."""
    monkeypatch.setenv("CONCLAVE_LEDGER__HEAD_FILE", str(tmp_path / "ledger.head"))
    for settings in (_demo_settings(tmp_path), _comparison_settings(tmp_path)):
        assert settings.ledger.head_file is False


def test_a_demo_in_a_ledger_of_ones_own_notes_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is noted where the environment says; the comparison is deleted all the same."""
    monkeypatch.setenv("CONCLAVE_LEDGER__HEAD_FILE", str(tmp_path / "ledger.head"))
    monkeypatch.setenv("CONCLAVE_LEDGER__URL", f"sqlite:///{tmp_path / 'kept.db'}")
    assert _demo_settings(tmp_path).ledger.head_file == tmp_path / "ledger.head"
    assert _comparison_settings(tmp_path).ledger.head_file is False
