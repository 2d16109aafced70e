"""Every recipe runs, as it stands on the page, against a real release."""

from __future__ import annotations

import csv
import io
import json
import shutil
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.docs.pages import ROOT, commands, examples
from tests.docs.reader import PRINTED_ADDRESS, Reader
from tests.docs.readers_release import write_release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = ROOT / "docs" / "recipes.md"
PEOPLE = "age,workclass\n41,State-gov\n22,Private\n,State-gov\n"
LABELS = {"<=50K", ">50K"}


@pytest.fixture(name="reader")
def reader_beside_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Reader]:
    """Return a reader with a table of questions, and a server of the release of the pages."""
    if shutil.which("curl") is None:
        pytest.skip("the recipes ask with curl, which is not installed")
    monkeypatch.chdir(tmp_path)
    write_release(tmp_path)
    (tmp_path / "questions.csv").write_text(PEOPLE, encoding="utf-8")
    reader = Reader(tmp_path, capsys.readouterr)
    yield reader
    reader.leave()


def test_the_commands_are_answered(reader: Reader, tmp_path: Path) -> None:
    """Curl by four routes and `conclave query` get the answers that the page says they get."""
    reader.serve("conclave.toml")
    typed = commands(PAGE)
    one, stream, labels, tensors, _ = (reader.follow(command) for command in typed)
    assert json.loads(one)["query_id"] == 1
    first, second = (json.loads(line) for line in stream.splitlines())
    assert first == json.loads(one) | {"replayed": True}
    assert second["query_id"] == 2
    assert len(json.loads(labels)["predictions"]) == 3
    outputs = {each["name"]: each["data"] for each in json.loads(tensors)["outputs"]}
    assert outputs["query_id"] == [1, 2]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "answered.csv").read_text())))
    assert [row["age"] for row in rows] == ["41", "22", ""]
    assert {row["query_id"] for row in rows} == {"3", "4", "5"}
    assert json.loads(labels)["predictions"] == [row["label"] or None for row in rows]


def test_the_retrying_client(reader: Reader) -> None:
    """The program gets an answer; its function gets the same one when replies are lost."""
    address = reader.serve("conclave.toml")
    names = run(examples(PAGE, "python")[0], address)
    assert len(names["printed"]) == 1
    assert set(names["printed"]) <= {*LABELS, "too close to call"}
    lossy = Lossy()
    with httpx.Client(base_url=address, transport=lossy) as client:
        answer = names["ask"](client, [33, "Private"], key="lost-twice")
        assert answer["query_id"] == names["answer"]["query_id"] + 1
        assert answer["replayed"]
        assert lossy.lost_count == 2
        with pytest.raises(RuntimeError, match="used with another"):
            names["ask"](client, [34, "Private"], key="lost-twice")
        budget = client.get("/budget").json()
    assert budget["queries"]["answered"] == answer["query_id"]


def test_the_retrying_client_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing answers it stops after its attempts, having waited longer each time."""
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    source = examples(PAGE, "python")[0].partition("\nwith ")[0]
    names = run(source, "")
    down = httpx.MockTransport(lambda _: httpx.Response(503, headers={"Retry-After": "2"}))
    with (
        httpx.Client(base_url=PRINTED_ADDRESS, transport=down) as client,
        pytest.raises(TimeoutError, match="6 attempts"),
    ):
        names["ask"](client, [1, None], key="never")
    assert waits == [2.0] * 6


def test_tritons_client_gets_its_rows(reader: Reader) -> None:
    """Three rows come back with their numbers."""
    address = reader.serve("conclave.toml")
    names = run(examples(PAGE, "python")[1], address)
    printed = [line.split(maxsplit=1) for line in names["printed"]]
    assert [number for number, _ in printed] == ["1", "2", "3"]
    assert {each for _, each in printed} <= {*LABELS, "too close to call"}
    assert len(names["labels"]) == 3


class Lossy(httpx.BaseTransport):
    """Sends every request, and loses the first two replies."""

    def __init__(self) -> None:
        """Lose nothing yet."""
        self.lost_count = 0
        self._sending = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the reply may get lost."""
        reply = self._sending.handle_request(request)
        if self.lost_count == 2:
            return reply
        self.lost_count += 1
        reply.read()
        reply.close()
        message = "the connection broke"
        raise httpx.ReadError(message)

    def close(self) -> None:
        """Close the connections."""
        self._sending.close()


def run(program: str, address: str) -> dict[str, Any]:
    """Run a program of the page against a server, and return its names."""
    port = address.removeprefix("http://")
    program = program.replace(PRINTED_ADDRESS, address).replace("127.0.0.1:8000", port)
    printed: list[str] = []
    # The server's log goes to the same output; the program's own lines are kept apart.
    names: dict[str, Any] = {"print": lambda *said: printed.append(" ".join(map(str, said)))}
    exec(program, names)  # noqa: S102 -- the page's own program is what is tested
    return names | {"printed": printed}
