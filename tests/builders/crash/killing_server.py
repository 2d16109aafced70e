r"""What ``conclave serve`` does, in a process that ends itself by SIGKILL at a chosen point.

The nursery forks it; it also runs by itself::

    python -m tests.builders.crash.killing_server --at switch:held \\
        --marks FILE --config conclave.toml

Points are ``STEP:EDGE:N``, the N-th time an edge of a step is passed once the
marks are armed; ``opening:STAGE:N``, the N-th progress of a stage of the
opening; and ``switch:charged`` and ``switch:drawn``, around the draw of the
classifier, or ``switch:untrained`` and ``switch:trained``, around the training of
a student, or ``statistics:charged`` and ``statistics:drawn``, around the draw of
the table.  ``switch:held`` lets the draw last instead; ``nowhere`` only marks.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.logs import configure_logs
from app.cli.web_server import WebServer, address_of, end_process, listen
from app.main import Server
from app.release.classifier import drawn_student as student
from app.release.classifier import switch as switch_phase
from app.release.statistics import opening_table as open_statistics
from app.settings.settings import load_settings
from tests.builders.crash.marks import Marks

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from app.answering.answer_query import Edge, Step
    from app.noise.source import NoiseSource
    from app.release.classifier.published_classifier import PublishedClassifier, TrainedStudent
    from app.release.release import Release
    from app.release.statistics.released_table import DrawnStatistics

HOLD_SECONDS = 300.0
NOWHERE = "nowhere"


@dataclass
class Killer:
    """Ends the process at one point, and marks every edge that is passed before.

    Attributes:
        point: the point, as above.
        marks: shared with the test.
        passed: how often the point was passed.

    """

    point: list[str]
    marks: Marks
    passed: int = field(default=0)

    def observe(self, step: Step, edge: Edge) -> None:
        """Mark an edge of a step, and die at the chosen one."""
        self.marks.note(step, edge)
        if self.point[:2] == [step.value, edge.value] and self.marks.armed:
            self._pass()

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Die in the chosen stage of the opening."""
        del done, total
        if self.point[:2] == ["opening", stage]:
            self._pass()

    def draw_classifier(self, release: Release, noise: NoiseSource) -> PublishedClassifier:
        """Die before the draw of the classifier, or between draw and publication."""
        if self.point == ["switch", "charged"]:
            die()
        if self.point == ["switch", "held"]:
            time.sleep(HOLD_SECONDS)
        drawn = _draw_classifier(release, noise)
        if self.point == ["switch", "drawn"]:
            die()
        return drawn

    def train_student(self, release: Release) -> TrainedStudent:
        """Die before the training of a student, or between training and publication."""
        if self.point == ["switch", "untrained"]:
            die()
        trained = _train_student(release)
        if self.point == ["switch", "trained"]:
            die()
        return trained

    def draw_statistics(self, release: Release, noise: NoiseSource) -> DrawnStatistics:
        """Die before the draw of the table, or between draw and publication."""
        if self.point == ["statistics", "charged"]:
            die()
        drawn = _draw_statistics(release, noise)
        if self.point == ["statistics", "drawn"]:
            die()
        return drawn

    def _pass(self) -> None:
        self.passed += 1
        if self.passed == int(self.point[2]):
            die()


class CountRequests:
    """Keeps in the marks how many queries are under way, as the application sees them."""

    def __init__(self, app: ASGIApp, marks: Marks) -> None:
        """Stand before an application."""
        self._application = app
        self._marks = marks
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a query from its beginning to its end."""
        if not scope.get("path", "").startswith("/query"):
            await self._application(scope, receive, send)
            return
        self._add(1)
        try:
            await self._application(scope, receive, send)
        finally:
            self._add(-1)

    def _add(self, change: int) -> None:
        self._count += change
        self._marks.under_way = self._count


_draw_classifier = switch_phase.draw_classifier
_train_student = student.train_student
_draw_statistics = open_statistics.draw_after_answers


def die() -> None:
    """End this process at once, as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def serve(config: Path, killer: Killer) -> None:
    """Serve until the point is reached, or until a signal."""
    switch_phase.draw_classifier = killer.draw_classifier
    student.train_student = killer.train_student
    open_statistics.draw_after_answers = killer.draw_statistics
    configure_logs()
    settings = load_settings(config, os.environ)
    server = Server(settings, progress=killer.progress, observe=killer.observe)
    application = server.application()
    application.add_middleware(CountRequests, marks=killer.marks)
    listening = listen(settings.server.host, settings.server.port)
    address = address_of(listening)
    print(f"conclave: opening {settings.release.name} on {address}", file=sys.stderr, flush=True)  # noqa: T201 -- as ``conclave serve`` says it
    WebServer(application, server, listening).serve_until_stopped()
    end_process(0)


def main() -> None:
    """Serve until the point is reached."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", required=True)
    parser.add_argument("--marks", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    serve(arguments.config, Killer(arguments.at.split(":"), Marks(arguments.marks)))


if __name__ == "__main__":
    main()
