"""The unmodified clients of KServe against a real server, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.builders.server.http_release import SmallRelease

PEERS = Path(sys.prefix) / "peers"
SCRIPT = Path(__file__).parents[3] / "peers" / "ask_kserve.py"
SECONDS_MAX = 120


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="KServe has no release for this Python")
@pytest.mark.skipif(
    sys.version_info < (3, 14) and not PEERS.is_dir(),
    reason=f"no {PEERS}; `make test` installs it from tests/peers/requirements.lock",
)
def test_kserve_asks_and_is_answered(
    opened_releases: Callable[[str], SmallRelease], tmp_path: Path
) -> None:
    """Probes, both forms of tensors, the request's id and refusals reach both clients."""
    release = opened_releases("{}").copy_to(tmp_path / "members")
    with serving(release.config, environ={"CONCLAVE_SERVER__GRPC_PORT": "0"}) as server:
        server.wait_until_ready()
        asked = subprocess.run(
            [sys.executable, SCRIPT, server.address, "members", server.grpc_address],
            env=os.environ | {"PYTHONPATH": str(PEERS)},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    assert asked.returncode == 0, asked.stderr
    told = json.loads(asked.stdout.splitlines()[-1])
    answers = {"id": "a-1", "label": ["yes", "no"], "query_id": [1, 2]}
    probes = {"live": True, "ready": True, "model": True, "another": False}
    assert told["rest"].pop("refused").startswith("there is no such model")
    assert told["rest"] == probes | {"json": answers, "binary": answers}
    assert told["grpc"].pop("refused") == "NOT_FOUND"
    assert told["grpc"] == probes | {"typed": answers, "raw": answers}
