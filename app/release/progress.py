"""Progress messages while a release is opened, without private values."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A display of an opening's stages to the operator; its counts are public."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report that ``done`` of ``total`` units of ``stage`` are done."""
        ...


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Show no progress to the operator."""
    del stage, done, total
