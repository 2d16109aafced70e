"""``conclave learn``: one document, or one line that says why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app import main
from app.cli import logs, run
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.ledger.ledger import open_ledger
from app.release.classifier.published_classifier import read_published

if TYPE_CHECKING:
    from app.ledger.entries.fold import LedgerState

CONFIGURATION = """\
[release]
name = "small"
[data]
source = "rows.csv"
label = "answer"
classes = ["no", "yes"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [0, 100]
thresholds = [25, 50, 75]
[hypotheses]
class = "stumps"
[privacy]
epsilon = 60
delta = 1e-2
[answers]
ensemble = 4
"""
ROWS = "age,answer\n" + "".join(
    f"{age},{'yes' if age >= 50 else 'no'}\n" for age in range(0, 100, 5)
)
POINTS = "answer,age\nunknown,11\n,61\n,91\n"
PLANE = """\
[release]
name = "plane"
[data]
source = "rows.csv"
label = "answer"
classes = ["no", "yes"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [0, 100]
[[data.features]]
name = "dose"
kind = "numeric"
bounds = [0, 100]
[hypotheses]
class = "CLASS"
bins = 6
[privacy]
epsilon = 10
delta = 1e-2
[privacy.shares]
relabel = 0
answers = 0
classifier = 1
"""
MARKER = "31337"


@pytest.fixture(autouse=True)
def _logs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are configured once for a whole process, which here runs other tests too."""
    monkeypatch.setattr(logs, "configure_logs", lambda: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a configuration, rows and public points."""
    (tmp_path / "conclave.toml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "public.csv").write_text(POINTS, encoding="utf-8")
    return tmp_path


def learn(folder: Path, *options: str | Path) -> int:
    """Run the command on the folder's configuration, whose four votes are hopeless."""
    config = str(folder / "conclave.toml")
    return run(["learn", "--even-if-hopeless", "--config", config, *map(str, options)])


def state(folder: Path) -> LedgerState:
    """Return what the folder's ledger says."""
    ledger = open_ledger(f"sqlite:///{folder / 'conclave.db'}", create=False)
    try:
        return ledger.read_state()
    finally:
        ledger.close()


def test_the_document_is_all_of_stdout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The published document goes to stdout byte for byte, and what it is worth to stderr."""
    assert learn(folder, "--public", folder / "public.csv") == 0
    printed = capsys.readouterr()
    published = state(folder).classifier
    assert published is not None
    assert printed.out == published.classifier
    document = json.loads(printed.out)
    assert (document["format"], document["release"]) == ("conclave-classifier", "small")
    assert document["tree"]["at_least"] in (25, 75)  # 50 parts the points as 25 does
    line, spent = printed.err.splitlines()
    assert line.startswith("conclave: drawing from 8 hypotheses that 3 public points fix, ")
    assert line.endswith(" rows")
    assert spent == (
        "conclave: the classifier is published, and its share of epsilon is spent for good; keep "
        f"the ledger {folder / 'conclave.db'}, which records this"
    )


def test_without_points_the_whole_class_competes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The private learner draws from every stump of the schema, into a file."""
    assert learn(folder, "-o", folder / "classifier.json") == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith(f"next: conclave serve --config {folder / 'conclave.toml'}\n")
    assert "drawing from 12 hypotheses that the schema fixes, at epsilon 18 on 20 rows" in (
        printed.err
    )
    document = json.loads((folder / "classifier.json").read_text(encoding="utf-8"))
    assert document["tree"] == {
        "feature": 0,
        "at_least": 50.0,
        "true": {"label": "yes"},
        "false": {"label": "no"},
    }


def test_what_is_committed_is_noted_by_the_end(folder: Path) -> None:
    """The head file has the publication as soon as the command ends; an older ledger is refused."""
    assert learn(folder, "-o", folder / "classifier.json") == 0
    (noted,) = json.loads((folder / "conclave.db.head").read_text(encoding="utf-8"))["releases"]
    head = state(folder).head
    assert (noted["sequence"], noted["hash"], noted["answered"]) == (head.sequence, head.hash, 0)
    (folder / "conclave.db").unlink()
    assert learn(folder, "-o", folder / "classifier.json") == 2
    assert not (folder / "conclave.db").exists()


@pytest.mark.parametrize("learner", ["semi-private", "private"])
@pytest.mark.parametrize(
    "kind", ["thresholds", "stumps", "intervals", "rectangles", "halfspaces", "trees"]
)
def test_every_class_is_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, learner: str
) -> None:
    """With the whole budget it draws a hypothesis that is right on nearly all of the rows."""
    (tmp_path / "conclave.toml").write_text(PLANE.replace("CLASS", kind), encoding="utf-8")
    rows = [(31 * number % 100, 57 * number % 89) for number in range(200)]
    lines = [f"{age},{dose},{'yes' if age >= 50 else 'no'}\n" for age, dose in rows]
    (tmp_path / "rows.csv").write_text("age,dose,answer\n" + "".join(lines), encoding="utf-8")
    points = "".join(f"{age}.5,{dose}\n" for age, dose in rows[:30])
    (tmp_path / "public.csv").write_text(f"age,dose\n{points}", encoding="utf-8")
    options = ("--public", str(tmp_path / "public.csv")) if learner == "semi-private" else ()
    assert learn(tmp_path, *options) == 0
    published = read_published(ClassifierPublished(classifier=capsys.readouterr().out))
    right = sum(
        (published.predict((float(age), float(dose))) == "yes") is (age >= 50) for age, dose in rows
    )
    # A draw loses more than 2 (ln|H| + ln(1/beta)) / epsilon rows with probability beta:
    # for the 16,000 trees 7 rows with 1e-10, beside those between a public cut and 50.
    assert right >= 160
    assert run(["verify", "--config", str(tmp_path / "conclave.toml")]) == 0


def test_a_second_classifier_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 1, no document and no file; export still writes the first."""
    assert learn(folder) == 0
    first = capsys.readouterr().out
    (folder / "rows.csv").unlink()  # it is told before a row is read
    head = state(folder).head
    assert learn(folder, "--public", folder / "public.csv", "-o", folder / "second.json") == 1
    assert capsys.readouterr() == (
        "",
        (
            "conclave: the classifier of this release is published already, and is drawn once; "
            "`conclave export --format json` writes it\n"
        ),
    )
    assert not (folder / "second.json").exists()
    assert state(folder).head == head
    config = str(folder / "conclave.toml")
    assert run(["export", "--config", config, "--format", "json"]) == 0
    assert capsys.readouterr().out == first
    assert run(["verify", "--config", config]) == 0


@pytest.mark.parametrize(
    ("points", "line"),
    [
        ("age\n1\nx31337\n", 'conclave: --public: column "age", row 2: must be a number'),
        ("years\n1\n", 'conclave: --public: column "age" is missing in the header'),
        ("age\n", "conclave: --public: FOLDER/public.csv has no row of data"),
        (None, "conclave: --public: cannot read FOLDER/public.csv: no such file or directory"),
    ],
)
def test_bad_points_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], points: str | None, line: str
) -> None:
    """Column and row are named, the value is not, and no ledger is made."""
    (folder / "public.csv").unlink()
    if points is not None:
        (folder / "public.csv").write_text(points, encoding="utf-8")
    assert learn(folder, "--public", folder / "public.csv") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.replace(str(folder), "FOLDER") == f"{line}\n"
    assert MARKER not in printed.err
    assert not (folder / "conclave.db").exists()


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("15,no", f"{MARKER}x,no", 'data.source: column "age", row 4: is not a number'),
        ("15,no", "15,maybe", 'data.source: column "answer", row 4: is not one of data.classes'),
    ],
)
def test_bad_rows_charge_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, line: str
) -> None:
    """A row that does not fit is named by its number, and no ledger is made."""
    (folder / "rows.csv").write_text(ROWS.replace(old, new), encoding="utf-8")
    assert learn(folder) == 2
    assert capsys.readouterr() == ("", f"conclave: {line}\n")
    assert not (folder / "conclave.db").exists()


def test_a_release_without_the_share_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names the share, and no ledger is made."""
    for name in ("AFTER", "ON_CUTOFF"):
        monkeypatch.setenv(f"CONCLAVE_ANSWERS__{name}", "halt")
    monkeypatch.setenv("CONCLAVE_PRIVACY__SHARES__CLASSIFIER", "0")
    assert learn(folder) == 2
    assert capsys.readouterr() == (
        "",
        (
            "conclave: privacy.shares.classifier: is 0, and learning spends this share; "
            "give it one in a new release\n"
        ),
    )
    assert not (folder / "conclave.db").exists()


def test_a_folder_that_is_not_there_is_told_before_anything_is_spent(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An output that could not be written is refused while the classifier is not drawn."""
    assert learn(folder, "-o", folder / "absent" / "classifier.json") == 2
    assert capsys.readouterr() == (
        "",
        f"conclave: --output: there is no folder {folder / 'absent'}\n",
    )
    assert not (folder / "conclave.db").exists()


def test_an_output_that_fails_says_that_it_is_published(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Published is published: the line says where to get the document."""
    assert learn(folder, "-o", folder) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "conclave: --output: Is a directory: it is published all the same, and "
        "`conclave export` writes it"
    )
    assert state(folder).classifier is not None


def test_an_unforeseen_failure_says_nothing_of_the_rows(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a draw raises is contained: one fixed line, the charge kept."""

    def fail(*_: object, **__: object) -> object:
        raise ValueError(MARKER)

    monkeypatch.setattr(main, "learn", fail)
    assert learn(folder) == 1
    printed = capsys.readouterr()
    assert (printed.out, MARKER in printed.err) == ("", False)
    assert printed.err.count("\n") == 1


def test_the_embedded_demo_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a configuration the demo's classifier is published, in a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONCLAVE_PRIVACY__SHARES__ANSWERS", "0")
    assert run(["learn"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "conclave-classifier"
    assert Path("conclave-demo.db").exists()
