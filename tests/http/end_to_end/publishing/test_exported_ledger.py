"""A stranger reads a real release's ledger over HTTP, page by page, and checks it alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.builders.server.http_release import agreed, split
from tests.builders.server.serving import Served
from tests.docs.test_exported_ledger import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

PAGE_ENTRIES = 3


def test_a_strangers_check_agrees_with_the_server(opened: OpenedRelease, tmp_path: Path) -> None:
    """The program finds the head, the answers and the unstable ones that the server tells."""
    with Served(opened().settings()) as served:
        for number in range(4):
            served.answer(agreed(number))
            served.answer(split(number % 2))
        pages, after = [], 0
        while (page := served.get(f"/ledger?after={after}&limit={PAGE_ENTRIES}").json())["entries"]:
            pages.append(tmp_path / f"page-{after}.json")
            pages[-1].write_text(json.dumps(page), encoding="utf-8")
            after = page["entries"][-1]["sequence"]
        head, budget = served.get("/ledger/head").json(), served.budget()
    arguments = [sys.executable, "-I", str(PROGRAM), *map(str, pages)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=tmp_path)
    answered, unstable = budget["queries"]["answered"], budget["unstable"]["count"]
    assert done.stdout == (
        f"{head['sequence']} entries, head {head['hash']}, "
        f"answered {answered}, unstable {unstable}\n"
    )
    assert (answered, unstable) == (6, 2)
