"""Progress bars on stderr while a release is opened, with stages and public counts.

Other commands that take long show a bar without counts.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from rich.progress import Task, TaskID


class RateColumn(ProgressColumn):
    """A progress bar's column that shows the rate of a stage, such as rows per second."""

    def render(self, task: Task) -> Text:
        """Return the rate as text; empty while it is unknown."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


class OpeningProgress:
    """Progress bars, one for each stage of opening a release, shown inside a ``with`` block.

    The object is called from the thread that opens the release; the library rich, which draws
    the bars, can be used from several threads.
    """

    def __init__(self, *, transient: bool = False) -> None:
        """Draw on stderr if that is a terminal; draw nothing otherwise.

        Args:
            transient: whether the bars disappear when the opening ends.

        """
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=transient,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report that ``done`` of ``total`` units of ``stage`` are done."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._tasks[stage], completed=done, total=total)

    def end(self) -> None:
        """Stop drawing progress bars, and leave them on the screen."""
        self._bars.stop()

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop drawing."""
        self.end()


@contextmanager
def at_work(stage: str) -> Iterator[None]:
    """Show inside a ``with`` block that something takes time, if stderr is a terminal."""
    with OpeningProgress(transient=True) as progress:
        progress(stage, 0, 1)
        yield
