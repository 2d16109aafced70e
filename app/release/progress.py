"""Progress messages while a release is opened, without private values."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A display of stages to the operator; counts of rows and chunks are public."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report that ``done`` of ``total`` units of ``stage`` are done."""
        ...


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Show no progress."""
    del stage, done, total
