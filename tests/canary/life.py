"""The lives of marked releases, driven once: all that every surface emits in each stage."""

from __future__ import annotations

import json
import re
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx

from tests.builders.server.http_release import SmallRelease
from tests.builders.server.nursery import started
from tests.builders.server.server_process import serving
from tests.canary.doubled import LOUD
from tests.canary.marked_release import QUERIES, marked_release
from tests.canary.surfaces import COMMANDS, SECONDS_MAX, SERVED, Scene
from tests.http.collector import collecting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.canary.surfaces import Surface

LOG = "conclave serve"
FRESH, CRASHED, PUBLISHED, ENDED = "answering", "crashed", "published", "ended"
CONTAINED, HALTED, REFUSED = "contained", "halted", "opening failed"
RUN, FAILED, LEAKY = "commands", "commands failed", "leaky"
STAGES = (
    *(
        (stage, surface.name)
        for stage in (FRESH, PUBLISHED, CONTAINED, HALTED)
        for surface in SERVED
    ),
    *((stage, LOG) for stage in (CRASHED, ENDED, REFUSED)),
    *((RUN, surface.name) for surface in COMMANDS),
    (FAILED, "conclave learn"),
    (FAILED, "conclave statistics"),
)
PAUSE_SECONDS = 0.05
TRACES = "CONCLAVE_TELEMETRY__TRACES_ENDPOINT"
GRPC_ON_A_FREE_PORT = {"CONCLAVE_SERVER__GRPC_PORT": "0"}


@dataclass
class Life:
    """What was emitted, by stage and surface.

    Attributes:
        folder: where the releases lie, each in a folder of its own.
        emitted: all bytes.

    """

    folder: Path
    emitted: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def drive(self, stage: str, surfaces: Sequence[Surface], scene: Scene) -> None:
        """Drive surfaces, and keep what they emit."""
        for surface in surfaces:
            self.emitted[stage, surface.name] = surface.emit(scene)

    def serve_whole(self, release: SmallRelease) -> None:
        """Open, answer, crash, start anew, publish and end."""
        with self.serving(release) as scene:
            self.drive(FRESH, SERVED, scene)
            scene.server._process.send_signal(signal.SIGABRT)
            scene.server.wait()
        self._keep_log(CRASHED, scene)
        for name in (CONTAINED, LEAKY):
            release.copy_to(self.folder / name)
        with self.serving(release) as scene:
            ask_all(scene.server.address)
            self.drive(PUBLISHED, SERVED, scene)
            scene.server.terminate()
            scene.server.wait()
        self._keep_log(ENDED, scene)

    def serve_faults(self, release: SmallRelease) -> None:
        """Fail after a vote, and start anew."""
        with self.serving(release, faults=["vote"]) as scene:
            scene.send("POST", "/query", json={"features": QUERIES[-1]})
            self.drive(CONTAINED, SERVED, scene)
        with self.serving(release) as scene:
            self.drive(HALTED, SERVED, scene)
            refused = scene.send("POST", "/query", json={"features": QUERIES[-2]})
            self.emitted[HALTED, "/query"] += refused

    def fail_to_open(self, release: SmallRelease) -> None:
        """Fail where the rows are."""
        scene = self.scene(release, faults=["opening"])
        scene.process = started(release.config, script=_script(scene), environ=LOUD)
        scene.process.wait()
        self._keep_log(REFUSED, scene)

    def run_commands(self, release: SmallRelease, other: SmallRelease) -> None:
        """Run every command, and those that read rows once more, failing there."""
        self.drive(RUN, COMMANDS, self.scene(release))
        failing = [surface for surface in COMMANDS if (FAILED, surface.name) in STAGES]
        self.drive(FAILED, failing, self.scene(other, faults=["learn", "statistics"]))

    def leak(self, release: SmallRelease, learnt: SmallRelease, leaks: Mapping[str, str]) -> None:
        """Serve with leaks, and export with them."""
        with self.serving(release, leaks=leaks) as scene:
            scene.send("POST", "/query", json={"features": QUERIES[-1]})
            self.drive(LEAKY, SERVED, scene)
        exporting = [surface for surface in COMMANDS if surface.name == "conclave export"]
        self.drive(LEAKY, exporting, self.scene(learnt, leaks=leaks))

    def release(self, name: str) -> SmallRelease:
        """Write a release of its own."""
        return marked_release(self.folder / name)

    def scene(self, release: SmallRelease, **doubles: object) -> Scene:
        """Return a scene without a server."""
        file = release.folder / "doubles.json"
        file.write_text(json.dumps(doubles), encoding="utf-8")
        return Scene(release, file)

    @contextmanager
    def serving(self, release: SmallRelease, **doubles: object) -> Iterator[Scene]:
        """Serve a release with doubles."""
        scene = self.scene(release, **doubles)
        with collecting() as scene.collector:
            environ = LOUD | GRPC_ON_A_FREE_PORT | {TRACES: scene.collector.endpoint}
            with serving(release.config, script=_script(scene), environ=environ) as scene.process:
                yield scene

    def _keep_log(self, stage: str, scene: Scene) -> None:
        # Which line of a source file a crash was at says nothing of any row, and may be any number.
        log = re.sub(r'(?m)^(  File ".*", line )\d+( in )', r"\1-\2", scene.server.errors())
        self.emitted[stage, LOG] = log.encode()


def ask_all(address: str) -> None:
    """Ask every query, and wait until classifier and table are there."""
    with httpx.Client(base_url=address, timeout=SECONDS_MAX) as client:
        for features in QUERIES:
            client.post("/query", json={"features": features})
        started = time.monotonic()
        for path in ("/classifier", "/statistics/table"):
            while client.get(path).status_code != HTTPStatus.OK:
                assert time.monotonic() - started < SECONDS_MAX
                time.sleep(PAUSE_SECONDS)


def live(folder: Path) -> Life:
    """Drive everything but the leaks."""
    life = Life(folder)
    served = life.release(PUBLISHED)
    life.serve_whole(served)
    life.serve_faults(SmallRelease(folder / CONTAINED, served.changes))
    life.fail_to_open(life.release(REFUSED))
    life.run_commands(life.release(RUN), life.release(FAILED))
    return life


def _script(scene: Scene) -> tuple[str, ...]:
    return ("-m", "tests.canary.doubled", str(scene.doubles), "serve")
