"""Lives of ledgers that hold two releases, end, are copied, backed up and restored."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from tests.lives.configurations import merged, toml_of
from tests.lives.ledgers import ledger_bytes
from tests.lives.people import questions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.lives.catalogue import Life
    from tests.lives.configurations import Tables
    from tests.lives.stage import Serving, Stage

ASKED_COUNT = 30


def two_releases(life: Life, stage: Stage) -> None:
    """Open a second release beside the first, refused until it states what both promise."""
    with stage.serving("first") as served:
        _ask(served, life, 0, 6)
    second: Tables = {"release": {"name": "second"}}
    stated: Tables = {"privacy.composed": {"epsilon": 120, "delta": 3e-6}}
    first = stage.config.read_text("utf-8")
    features = first[first.index("[[data.features]]") : first.index("[hypotheses]")]
    source = [line for line in first.splitlines() if line.startswith(("source = ", "query = "))]
    url = [line for line in first.splitlines() if line.startswith("url = ")]
    for moment, changes in (("unstated", ()), ("stated", (stated,))):
        text = toml_of(merged(second, *changes))
        text = text.replace("[data]\n", "\n".join(["[data]", *source, ""]))
        text = text.replace("[hypotheses]\n", features + "[hypotheses]\n")
        stage.config.write_text(text.replace("[ledger]\n", "\n".join(["[ledger]", *url, ""])))
        stage.refused(moment)
    with stage.serving("second") as served:
        _ask(served, life, 3, 12)
        served.get("/budget")
        served.get("/ledger?limit=1000")
    stage.configured("verify")
    stage.configured("keys usage")
    stage.keep_ledger("at the end")


def retired(life: Life, stage: Stage) -> None:
    """Close a release for good, and serve what it recorded."""
    with stage.serving("first") as served:
        _ask(served, life, 0, 6)
    stage.configured("ledger retire")
    stage.configured("ledger retire")
    with stage.serving("closed") as served:
        _ask(served, life, 3, 9)
        for path in ("/budget", "/classifier", "/readyz", "/metrics"):
            served.get(path)
    for command in ("learn", "verify", "ledger retire --move"):
        stage.configured(command)
    stage.keep_ledger("at the end")


def copied(life: Life, stage: Stage) -> None:
    """Move a ledger to another database, and serve both."""
    with stage.serving("first") as served:
        _ask(served, life, 0, 6)
    target = f"sqlite:///{stage.folder / 'copied.db'}"
    for _ in range(2):
        stage.command("ledger", "copy", "--from", stage.url, "--to", target)
    stage.keep("the copy", ledger_bytes(target))
    with stage.serving("left") as served:
        _ask(served, life, 3, 9)
    stage.keep_ledger("that was left")
    stage.environ["CONCLAVE_LEDGER__URL"] = target
    with stage.serving("moved") as served:
        _ask(served, life, 3, 12)
        served.get("/ledger?limit=1000")
    stage.configured("verify")
    stage.keep("the copy at the end", ledger_bytes(target))


def backed_up(life: Life, stage: Stage) -> None:
    """Back a ledger up, restore it without a code, and with one."""
    with stage.serving("first") as served:
        _ask(served, life, 0, 6)
        copy = str(stage.folder / "copy.db")
        for _ in range(2):
            stage.configured("ledger backup", "--output", copy)
    told = stage.configured("ledger retire", "--move").decode().split()
    code = next((word for word in told if len(word) == CODE_LENGTH), "ab" * 32)
    for name, options in (
        ("closed", ()),
        ("wrong", ("--code", "cd" * 32)),
        ("open", ("--code", code)),
    ):
        folder = stage.folder / name
        folder.mkdir()
        for file in stage.folder.glob("rows*"):
            if file.is_file():
                shutil.copy(file, folder)
        shutil.copy(stage.config, folder)
        config = folder / stage.config.name
        url = f"sqlite:///{folder / 'conclave.db'}"
        own = config.read_text("utf-8").replace(stage.url, url)
        config.write_text(own, encoding="utf-8")
        stage.command("ledger", "restore", "--config", str(config), copy, *options)
        stage.command("verify", "--config", str(config))
        if (folder / "conclave.db").exists():
            stage.keep(f"restored {name}", ledger_bytes(url))


def _ask(served: Serving, life: Life, start: int, stop: int) -> None:
    for vector in questions(len(life.name), ASKED_COUNT)[start:stop]:
        served.post("/query", {"features": vector})


CODE_LENGTH: Final = 64
PLAYS: Final[Mapping[str, Callable[[Life, Stage], None]]] = {
    "two_releases": two_releases,
    "retired": retired,
    "copied": copied,
    "backed_up": backed_up,
}
