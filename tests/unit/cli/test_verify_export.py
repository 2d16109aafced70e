"""``conclave verify`` and ``conclave export``: one line, an exit code, and nothing touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.cli import run
from app.cli.verify import VERIFYING
from app.errors import LedgerCorruptError
from app.ledger.database.tables import REVISION
from app.release.classifier.classifier_document import read_document
from app.release.classifier.onnx.onnx_model import OWN_CODE, to_onnx
from tests.builders.ledger.releases import DOCUMENT, create, middle_of_life, publish, tamper
from tests.builders.release.onnx_models import labels_of

if TYPE_CHECKING:
    from pathlib import Path

    from app.release.classifier.classifier_document import ClassifierDocument

CONFIGURATION = """
[release]
name = "test"
[data]
source = "absent.csv"
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "x"
kind = "numeric"
bounds = [0, 1]
[hypotheses]
class = "stumps"
[ledger]
url = "sqlite:///life.db"
"""
DOCUMENT_START = (
    '{"format":"conclave-classifier","version":1,"release":"example","label":"y",'
    '"classes":["no","yes"],"missing":[],'
    '"features":[{"name":"x","kind":"numeric","bounds":[0.0,1.0]}],'
)
TREE = '"tree":{"feature":0,"at_least":0.5,"true":{"label":"yes"},"false":{"label":"no"}}'


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    """Return a configuration whose data do not exist, and whose ledger may."""
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION, encoding="utf-8")
    return str(path)


@pytest.fixture
def head(tmp_path: Path) -> str:
    """Create the ledger that the configuration names; return its newest hash."""
    ledger = middle_of_life(tmp_path / "life.db")
    newest = ledger.read_state().head.hash
    ledger.close()
    return newest


def test_verify_prints_one_line(
    configuration: str, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sound ledger gets one line with sequence, head, counters and charges."""
    assert run(["verify", "--config", configuration, "--expect-head", head]) == 0
    assert capsys.readouterr().out == (
        f"verified: sequence 9, head {head}, answered 9, unstable 2, "
        "charged epsilon 0.7, delta 1e-06\n"
    )


def test_a_terminal_shows_that_a_ledger_is_verified(
    configuration: str,
    head: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A bar on standard error, where that is a terminal."""
    del head
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["verify", "--config", configuration]) == 0
    shown = capsys.readouterr()
    assert VERIFYING in shown.err
    assert shown.out.startswith("verified: sequence 9, ")


def test_verify_accounts_for_what_is_wrong(
    configuration: str, head: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ledger that was tampered with, or has not the head, gets one plain line and 1."""
    assert run(["verify", "--config", configuration, "--expect-head", "ab"]) == 1
    assert capsys.readouterr().err == "conclave: no entry has the expected hash ab\n"
    tamper(tmp_path / "life.db", "DELETE FROM answers WHERE query_id = 9")
    assert run(["verify", "--config", configuration, "--expect-head", head]) == 1
    assert capsys.readouterr() == (
        "",
        "conclave: answer 9 of entry 9 is missing from the answers table\n",
    )


def test_verify_accounts_for_a_damaged_file(
    configuration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is no database any more is a ledger that does not verify."""
    (tmp_path / "life.db").write_bytes(b"x" * 5000)
    assert run(["verify", "--config", configuration]) == 1
    assert capsys.readouterr().err == "conclave: the file of the ledger is damaged\n"


@pytest.mark.parametrize(
    ("statement", "account"),
    [
        (
            "UPDATE entries SET kind = CAST(x'c1' AS TEXT) WHERE sequence = 6",
            "entry 6 does not have the hash that its contents and the entry before it give",
        ),
        (
            "UPDATE private_state SET name = CAST(x'e56e' AS TEXT) WHERE name = 'ensemble'",
            "the private state has a piece that no entry binds: \ufffdn",
        ),
        (
            "UPDATE private_state SET name = 'en' || char(10) || 'le' WHERE name = 'ensemble'",
            "the private state has a piece that no entry binds: en le",
        ),
        (
            "UPDATE alembic_version SET version_num = '0002'",
            f"the database of the ledger says revision 0002, and has the tables of {REVISION}",
        ),
        (
            "UPDATE alembic_version SET version_num = '0p03'",
            "the database of the ledger has an altered revision of its tables",
        ),
        (
            "DELETE FROM alembic_version",
            "the database of the ledger has lost the revision of its tables",
        ),
    ],
)
def test_verify_tells_damage_in_one_line(
    statement: str,
    account: str,
    configuration: str,
    head: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is no text any more, has a line break, or is no revision is one line and exit code 1."""
    tamper(tmp_path / "life.db", statement)
    assert run(["verify", "--config", configuration, "--expect-head", head]) == 1
    assert capsys.readouterr() == ("", f"conclave: {account}\n")


@pytest.mark.parametrize("revision", ["0001", "0002", "0006"])
def test_a_revision_that_is_too_old_is_told_by_a_start(tmp_path: Path, revision: str) -> None:
    """Opening to write names a revision that its tables are past, and changes nothing."""
    path = tmp_path / "life.db"
    middle_of_life(path).close()
    tamper(path, f"UPDATE alembic_version SET version_num = '{revision}'")  # noqa: S608 -- ours
    content = path.read_bytes()
    with pytest.raises(LedgerCorruptError, match=f"says revision {revision}, and has the tables"):
        create(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("command", [["verify"], ["export", "--format", "json"]])
def test_absent_ledger_is_not_created(
    command: list[str],
    configuration: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A ledger that is not there is said so, and is still not there afterwards."""
    assert run([*command, "--config", configuration]) == 2
    expected = f"conclave: ledger.url: there is no ledger at {tmp_path / 'life.db'}\n"
    assert capsys.readouterr() == ("", expected)
    assert [path.name for path in tmp_path.iterdir()] == ["conclave.toml"]


def test_export_writes_the_published_document(
    configuration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The document comes byte for byte from its entry, on the terminal or in a file."""
    ledger = middle_of_life(tmp_path / "life.db")
    publish(ledger)
    ledger.close()
    target = tmp_path / "classifier.json"
    assert run(["export", "--config", configuration, "--format", "json"]) == 0
    assert capsys.readouterr().out == DOCUMENT
    assert run(["export", "--config", configuration, "--format", "json", "-o", str(target)]) == 0
    assert capsys.readouterr() == ("", "")
    assert target.read_text(encoding="utf-8") == DOCUMENT


@pytest.mark.usefixtures("head")
def test_export_before_the_switch_is_refused(
    configuration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a published classifier there is one line, exit code 1, and no file."""
    target = tmp_path / "classifier.json"
    assert run(["export", "--config", configuration, "--format", "json", "-o", str(target)]) == 1
    assert capsys.readouterr() == (
        "",
        "conclave: no classifier is published yet; export it after the switch\n",
    )
    assert not target.exists()


def test_export_to_a_missing_folder_is_refused(
    configuration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that cannot be written is said so in one line."""
    ledger = middle_of_life(tmp_path / "life.db")
    publish(ledger)
    ledger.close()
    target = tmp_path / "absent" / "classifier.json"
    assert run(["export", "--config", configuration, "--format", "json", "-o", str(target)]) == 2
    assert capsys.readouterr().err == f"conclave: {target}: No such file or directory\n"


def test_formats_of_other_versions_are_refused(
    configuration: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A format that this version does not write is bad usage."""
    assert run(["export", "--config", configuration, "--format", "pickle"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "--format" in printed.err


def export_model(configuration: str, *more: str) -> int:
    """Export as ONNX and return the exit code."""
    return run(["export", "--config", configuration, "--format", "onnx", *more])


@pytest.fixture
def published(tmp_path: Path) -> ClassifierDocument:
    """Publish a tree of one test in the ledger that the configuration names."""
    text = publish_document(tmp_path, TREE)
    return read_document(text)


def publish_document(folder: Path, hypothesis: str) -> str:
    """Publish a document, which says ``hypothesis``, in a new ledger."""
    text = DOCUMENT_START + hypothesis + "}"
    ledger = middle_of_life(folder / "life.db")
    publish(ledger, text)
    ledger.close()
    return text


def test_export_writes_a_model(
    configuration: str,
    published: ClassifierDocument,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """The same model goes into a file or a pipe, and predicts as the document."""
    target = tmp_path / "classifier.onnx"
    assert export_model(configuration, "-o", str(target)) == 0
    assert export_model(configuration) == 0
    model = target.read_bytes()
    assert capfdbinary.readouterr() == (model, b"")
    assert model == to_onnx(published)
    assert labels_of(model, published, [(0.4,), (0.5,), (None,)]) == ["no", "yes", "no"]


@pytest.mark.usefixtures("published")
def test_a_terminal_gets_no_model(
    configuration: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Binary on a terminal helps nobody: one line says to name a file."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert export_model(configuration) == 2
    expected = "conclave: --output: an ONNX model is binary; name a file or a pipe\n"
    assert capsys.readouterr() == ("", expected)


def test_code_has_no_model(
    configuration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A predictor of the operator's own is told to go as JSON, does so, and leaves no file."""
    predictor = '"predictor":{"of":"finite","description":{"function":"absent:always"}}'
    text = publish_document(tmp_path, predictor)
    target = tmp_path / "classifier.onnx"
    assert export_model(configuration, "-o", str(target)) == 1
    assert capsys.readouterr() == ("", f"conclave: {OWN_CODE}\n")
    assert not target.exists()
    assert run(["export", "--config", configuration, "--format", "json"]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.usefixtures("head")
def test_a_model_before_the_switch_is_refused(
    configuration: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a published classifier there is no model either."""
    assert export_model(configuration) == 1
    assert capsys.readouterr() == (
        "",
        "conclave: no classifier is published yet; export it after the switch\n",
    )


def test_demos_ledger_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a configuration the embedded demo's ledger is verified."""
    monkeypatch.chdir(tmp_path)
    create(tmp_path / "conclave-demo.db").close()
    assert run(["verify"]) == 0
    assert capsys.readouterr().out.startswith("verified: sequence 0, head 000")
