"""``conclave plan`` as people see it: words, tables, a plot; in a pipe and on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.cli import run
from app.cli.plan import plot as plan_plot
from app.planning.curves import panels
from app.planning.from_settings import plan_settings
from app.settings.settings import load_settings
from tests.unit.cli.plan.test_command import CONFIGURATION, plan

if TYPE_CHECKING:
    from pathlib import Path

ESCAPE = "\x1b"
PNG = b"\x89PNG\r\n\x1a\n"
SHARES = '{"relabel": 0, "answers": 0.6, "classifier": 0, "statistics": 0.4}'
STATISTICS = {
    "CONCLAVE_PRIVACY__SHARES": SHARES,
    "CONCLAVE_ANSWERS__AFTER": "halt",
}


@pytest.fixture(name="configuration")
def configuration_file(tmp_path: Path) -> Path:
    """A configuration whose data do not exist."""
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION)
    return path


def on_a_terminal(arguments: list[str], *, columns: int, **environment: str) -> str:
    """Run the real command on a pseudo-terminal of that width and return what it shows."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    unset = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "CI"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    running = subprocess.Popen(
        [sys.executable, "-m", "app", *arguments],
        stdin=child,
        stdout=child,
        stderr=child,
        env={**inherited, "TERM": "xterm-256color", **environment},
    )
    os.close(child)
    shown = b""
    while part := _read(parent):
        shown += part
    os.close(parent)
    assert running.wait() == 0
    return shown.decode()


def _read(terminal: int) -> bytes:
    """Return what comes next; nothing where the other side has closed it."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_a_pipe_gets_plain_lines(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is one line without colours or frames, whatever the width that COLUMNS says."""
    monkeypatch.setenv("COLUMNS", "20")
    assert run(plan("--config", str(configuration), "--verbose")) == 0
    printed = capsys.readouterr().out
    assert ESCAPE not in printed
    assert not set("│┃━─") & set(printed)
    assert re.search(r"^hypotheses +\d+ +that learners search", printed, re.MULTILINE)
    assert printed.startswith("This release works on 20,000 rows at epsilon 8: k = ")


def test_a_terminal_gets_colours_within_its_width(configuration: Path) -> None:
    """There are colours and frames; no line is wider but the next command, which stays whole."""
    shown = on_a_terminal(plan("--config", str(configuration), "--verbose"), columns=64)
    assert f"{ESCAPE}[1;32m" in shown
    assert "┃" in shown
    lines = re.sub(rf"{ESCAPE}\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "\n").split("\n")
    *lines, following = filter(None, lines)
    assert following == f"next: conclave check --config {configuration}"
    assert max(map(len, lines)) <= 64
    assert "meaning" not in shown


def test_no_color_is_honoured_on_a_terminal(configuration: Path) -> None:
    """With NO_COLOR there is no colour, and the tables stay."""
    shown = on_a_terminal(
        plan("--config", str(configuration), "--verbose"), columns=100, NO_COLOR="1"
    )
    assert not re.search(rf"{ESCAPE}\[[0-9;]*3[0-9]m", shown)
    assert "meaning" in shown


def test_the_words_and_tables_are_those_of_the_document(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every sentence of ``summary`` is printed, and the labels of every agreement."""
    assert run(plan("--config", str(configuration), "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert run(plan("--config", str(configuration), "--verbose")) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[: len(document["summary"])] == document["summary"]
    assert [each["agreement"] for each in document["answers_by_agreement"]][:3] == [1, 0.95, 0.9]
    for each in document["answers_by_agreement"]:
        (row,) = re.findall(rf"^{each['agreement']:.0%} .*$", printed, re.MULTILINE)
        shown = re.sub(" [a-z]+$", "", row).split()[-1]
        assert str(each["labels"]).startswith(re.sub(r"[,.]", "", shown)[:2])
    assert {each["setting"] for each in document["changes"]} == {
        "privacy.epsilon",
        "answers.cutoff",
        "data.rows",
    }


def test_a_chance_of_nothing_is_shown(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sparse vector's chance of an unstable answer may be zero in doubles, and is told."""
    monkeypatch.setenv("CONCLAVE_PRIVACY__CALIBRATION", "svt")
    monkeypatch.setenv("CONCLAVE_ANSWERS__CUTOFF", "1")
    monkeypatch.setenv("CONCLAVE_ANSWERS__ENSEMBLE", "20000")
    assert run(plan("--config", str(configuration), "--verbose")) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^100% +1 in 1\.0e\+18 ", printed, re.MULTILINE)


def test_statistics_have_their_alpha(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table's alpha is planned, on few public points and on many, and shown."""
    for name, value in STATISTICS.items():
        monkeypatch.setenv(name, value)
    assert run(plan("--config", str(configuration), "--json")) == 0
    found = json.loads(capsys.readouterr().out)["statistics"]
    assert 0 < found["few_points"]["alpha"] < found["many_points"]["alpha"] <= 2
    assert found["many_points"]["hypotheses"] == 1 << 14
    monkeypatch.setenv("CONCLAVE_STATISTICS__TESTS", '{"x": [0.5]}')
    assert run(plan("--config", str(configuration), "--json")) == 0
    listed = json.loads(capsys.readouterr().out)["statistics"]
    assert listed["few_points"] == listed["many_points"]
    assert run(plan("--config", str(configuration), "--verbose")) == 0
    assert re.search(r"^statistics\.few_points\.alpha +0\.", capsys.readouterr().out, re.MULTILINE)
    assert run(plan("--config", str(configuration), "--rows", "1", "--json")) in {1, 2}


def test_the_plot_is_a_picture_of_the_series(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--plot`` writes a PNG, and with ``--json`` its series are in the document."""
    path = tmp_path / "plan.png"
    assert run(plan("--config", str(configuration), "--plot", str(path), "--json")) == 0
    assert path.read_bytes().startswith(PNG)
    curves = json.loads(capsys.readouterr().out)["curves"]
    assert list(curves) == ["privacy.epsilon", "answers.cutoff", "data.rows"]
    settings = load_settings(configuration, {})
    planned = plan_settings(settings, None)
    found = panels(planned.request, rows_needed=None, progress=lambda *_: None)
    drawn = plan_plot.figure("example", planned, found)
    for axes, (_, series) in zip(drawn.axes, curves.items(), strict=True):
        for line, curve in zip(axes.lines, series, strict=False):
            shown = [point for point in curve["points"] if point[1]]
            assert np.array_equal(line.get_xydata(), shown)
            assert line.get_label() == f"{curve['agreement']:.0%}"
        assert axes.get_xlabel()
    assert drawn.get_suptitle().startswith("example: n = 20,000, epsilon 8, k = ")


def test_a_noisy_vote_is_plotted_without_a_cutoff(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has two panels, in whatever form the name's ending asks for."""
    monkeypatch.setenv("CONCLAVE_ANSWERS__MECHANISM", "noisy-vote")
    path = tmp_path / "plan.svg"
    run(plan("--config", str(configuration), "--plot", str(path)))
    text = path.read_text()
    assert text.startswith("<?xml")
    assert text.count('id="axes_') == 2


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("plan.bmp", "must end in .png, .svg, .pdf"),
        ("absent/plan.png", "is no folder"),
    ],
)
def test_a_plot_that_cannot_be_written_is_refused(
    name: str, problem: str, configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ending and the folder are looked at before any work."""
    path = configuration.parent / name
    assert run(plan("--config", str(configuration), "--plot", str(path))) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("conclave: --plot: ")
    assert problem in line


def test_without_matplotlib_the_line_says_what_to_install(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra is named in one line, and exit code 2."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    path = configuration.parent / "plan.png"
    assert run(plan("--config", str(configuration), "--plot", str(path))) == 2
    assert capsys.readouterr().err == f"conclave: --plot: {plan_plot.ABSENT}\n"


def test_there_is_nothing_to_plot_without_answers(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that starts in the classifier phase has no ensemble to draw."""
    monkeypatch.setenv("CONCLAVE_PRIVACY__SHARES", '{"relabel": 0, "answers": 0, "classifier": 1}')
    path = configuration.parent / "plan.png"
    assert run(plan("--config", str(configuration), "--plot", str(path))) == 2
    assert "--plot: has nothing to draw: answers have no share" in capsys.readouterr().err


def test_only_a_release_is_plotted(capsys: pytest.CaptureFixture[str]) -> None:
    """The other forms refuse the option in one line."""
    given = ("--epsilon", "1", "--delta", "1e-6", "--cutoff", "1")
    assert run(plan("--profile", *given, "--plot", "plan.png")) == 2
    assert capsys.readouterr().err == "conclave: --plot: does not go with --profile\n"
