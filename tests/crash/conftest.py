"""Releases to be killed: the ones of the end-to-end tests."""

from __future__ import annotations

from tests.http.end_to_end.conftest import opened, opened_releases

__all__ = ["opened", "opened_releases"]
