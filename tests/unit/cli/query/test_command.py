"""``conclave query``: a CSV through a server, whatever becomes of the connection."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import httpx
import pytest

from app.cli import run
from app.cli.query import client as query_client
from app.cli.query import command as query
from app.cli.query.client import ATTEMPTS_MAX, QueryClient
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = {
    "release": "adult-income",
    "features": [
        {"name": "age", "kind": "numeric", "bounds": [17.0, 90.0]},
        {"name": "workclass", "kind": "categorical", "categories": ["Private"]},
    ],
    "label": "income",
    "classes": ["<=50K", ">50K"],
    "missing": ["?"],
}
SEMICOLONS = 'separated by ";": set --separator ";", and --decimal "," where numbers have a comma'
URL = "http://server.example"
EXHAUSTED = {"type": "urn:conclave:problem:budget-exhausted", "status": 410, "detail": "halted"}
OPENING = {"type": "urn:conclave:problem:opening", "status": 503, "detail": "opening"}


class Server(httpx.BaseTransport):
    """Answers by position, after going through its list of misfortunes.

    Attributes:
        misfortunes: one a request to the stream, first to last: a whole reply
            in its place, or the number of lines after which it breaks off.
        asked: every query that reached it, in order.
        keys: the authorization of every request.

    """

    def __init__(self, *misfortunes: httpx.Response | int) -> None:
        """Start healthy but for ``misfortunes``."""
        self.misfortunes = list(misfortunes)
        self.refused_ages: set[float] = set()
        self.precision: int | None = None
        self.precisions: list[int | None] = []
        self.asked: list[list[object]] = []
        self.keys: list[str | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Serve the two routes that the command uses."""
        self.keys.append(request.headers.get("authorization"))
        if request.url.path == "/schema":
            told = {} if self.precision is None else {"precision": self.precision}
            return httpx.Response(200, json=SCHEMA | told)
        assert request.url.path == "/query/stream"
        assert request.headers["content-type"] == "application/x-ndjson"
        misfortune = self.misfortunes.pop(0) if self.misfortunes else None
        if isinstance(misfortune, httpx.Response):
            return misfortune
        return httpx.Response(200, stream=Broken(self._replies(request), misfortune))

    def _replies(self, request: httpx.Request) -> Iterator[bytes]:
        for line in request.read().splitlines():
            features = json.loads(line)["features"]
            self.asked.append(features)
            self.precisions.append(json.loads(line).get("precision"))
            yield json.dumps(self._reply(features)).encode() + b"\n"

    def _reply(self, features: list[object]) -> dict[str, object]:
        if features[0] in self.refused_ages:
            return EXHAUSTED
        bins = {"score": 0.25, "bin": {"lower": 0.0, "upper": 0.5}, "precision": 2}
        if features[0] is None:
            bins = {"score": None, "bin": None, "precision": 2}
        return ({} if self.precision is None else bins) | {
            "query_id": len(self.asked),
            "label": None if features[0] is None else ">50K\u2028",
            "stable": features[0] is not None,
            "phase": "ensemble",
            "replayed": False,
        }


class Broken(httpx.SyncByteStream):
    """A body that breaks off after a number of lines, if it is given one."""

    def __init__(self, lines: Iterator[bytes], break_after: int | None) -> None:
        """Send ``lines`` up to the break."""
        self._lines = lines
        self._break_after = break_after

    def __iter__(self) -> Iterator[bytes]:
        """Yield lines, then break as a network does."""
        for number, line in enumerate(self._lines):
            if number == self._break_after:
                raise httpx.ReadError("gone")
            yield line


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server that the command reaches at every address, without waiting."""
    server = Server()

    class Client(QueryClient):
        def __init__(self, url: str, key: str | None) -> None:
            super().__init__(url, key, transport=server, pause=lambda _: None)

    monkeypatch.setattr(query_client, "QueryClient", Client)
    return server


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a file whose columns are in another order, with one more and a BOM."""
    path = tmp_path / "in.csv"
    path.write_text('\ufeffid,workclass,age\n1, Private,39\n\n2,?, 41.5\n3,"a,b",\n', "utf-8")
    return path


def test_copies_the_input_and_appends_the_answers(
    server: Server, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns are matched by name; missing values become null; others pass through."""
    assert run(["query", "--url", URL, "--key", "secret", str(table)]) == 0
    assert server.asked == [[39.0, " Private"], [41.5, None], [None, "a,b"]]
    assert server.keys == ["Bearer secret"] * 2
    assert capsys.readouterr().out == (
        "id,workclass,age,query_id,label,stable,phase,replayed\n"
        "1, Private,39,1,>50K\u2028,true,ensemble,false\n"
        "2,?, 41.5,2,>50K\u2028,true,ensemble,false\n"
        '3,"a,b",,3,,false,ensemble,false\n'
    )


def test_a_file_in_another_dialect_comes_out_with_its_separator(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers have their commas, and what is written is UTF-8."""
    path = tmp_path / "in.csv"
    path.write_text("age;workclass\n41,5;Straße\n", "utf-16")
    dialect = ["--separator", ";", "--decimal", ",", "--encoding", "UTF-16"]
    assert run(["query", "--url", URL, str(path), *dialect]) == 0
    assert server.asked == [[41.5, "Straße"]]
    assert capsys.readouterr().out == (
        "age;workclass;query_id;label;stable;phase;replayed\n"
        "41,5;Straße;1;>50K\u2028;true;ensemble;false\n"
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ["--separator", ";;"],
            '--separator: must be one character such as ",", ";", "\\t" or "|"',
        ),
        (["--decimal", ";"], '--decimal: must be "." or ","'),
        (["--decimal", ","], "--decimal: is --separator too: give one of them"),
        (
            ["--encoding", "rot13"],
            '--encoding: must be a text encoding such as "utf-8", "utf-16" or "cp1252"',
        ),
    ],
)
def test_what_is_no_dialect_is_one_line(
    server: Server, options: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is asked, and the line names the option."""
    assert run(["query", "--url", URL, "in.csv", *options]) == 2
    assert capsys.readouterr().err == f"conclave: {line}\n"
    assert server.keys == []


def test_reads_standard_input(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a file, or with a dash for one, rows come from standard input."""
    for arguments in ([], ["-"]):
        text = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfage,workclass\r\n39,Private\r\n"))
        monkeypatch.setattr("sys.stdin", text)
        assert run(["query", "--url", URL, *arguments]) == 0
        assert capsys.readouterr().out.startswith("age,workclass,query_id")
    assert server.asked == [[39.0, "Private"]] * 2


def test_writes_to_a_file_and_takes_its_key_from_the_environment(
    server: Server, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONCLAVE_KEY is the key, -o the output."""
    monkeypatch.setenv("CONCLAVE_KEY", "from-environment")
    output = tmp_path / "out.csv"
    assert run(["query", "--url", URL, str(table), "-o", str(output)]) == 0
    assert len(output.read_text("utf-8").split("\n")) == 5
    assert server.keys == ["Bearer from-environment"] * 2


def test_refused_rows_are_left_empty_and_counted(
    server: Server, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A halted release leaves a row without an answer, stderr says how many, and the code is 1."""
    server.refused_ages = {39.0, 41.5}
    assert run(["query", "--url", URL, str(table)]) == 1
    captured = capsys.readouterr()
    assert captured.out.split("\n")[1] == "1, Private,39,,,,,"
    assert captured.err == "conclave: 1 rows answered\nconclave: 2 rows refused: halted\n"


def test_a_last_column_says_why_a_row_was_refused(
    server: Server, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --problems it has the server's words, and is empty where there is an answer."""
    server.refused_ages = {39.0}
    assert run(["query", "--url", URL, "--problems", str(table)]) == 1
    header, first, second, *_ = capsys.readouterr().out.split("\n")
    assert header.endswith(",replayed,problem")
    assert first.endswith(",halted")
    assert second.endswith(",false,")


@pytest.mark.parametrize("url", ["localhost:8000", "127.0.0.1:1", "ftp://server.example"])
def test_an_address_without_a_scheme_is_one_line(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line says how an address begins."""
    assert run(["query", "--url", url, "in.csv"]) == 2
    begins = "conclave: --url: begins with http:// or https://"
    assert capsys.readouterr().err == f"{begins}; did you mean http://{url} ?\n".replace(
        "http://ftp://", "http://"
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@127.0.0.1:1/x",
        "http://me:sec@ret@127.0.0.1:1",
        "http://me:secret@127.0.0.1:port",
        "ftp://me:secret@server.example",
        "me:secret@server.example",
    ],
)
def test_a_password_in_an_address_is_not_shown(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors name the server alone."""
    assert run(["query", "--url", url, "in.csv"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("conclave: --url: ")
    assert "ret@" not in told
    assert "me:" not in told


def test_asks_in_bounded_requests(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long file is many requests, in order."""
    monkeypatch.setattr(query, "ROWS_A_REQUEST", 10)
    path = tmp_path / "long.csv"
    path.write_text("age,workclass\n" + "".join(f"{age},Private\n" for age in range(25)))
    assert run(["query", "--url", URL, str(path)]) == 0
    assert [features[0] for features in server.asked] == list(range(25))
    assert len(server.keys) == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "{path}: is empty; a header line is needed"),
        ("age\n1\n", "{path}: has no column named workclass, which the server asks for"),
        (
            "age,workclass,age\n1,a,2\n",
            "{path}: has more than one column named age, which the server asks for",
        ),
        ("age,workclass\n1,a\nold,a\n", "age: row 2: a number is needed"),
        ("age,workclass\n1,a\nnan,a\n", "age: row 2: a number is needed"),
        ("age,workclass\n1e999,a\n", "age: row 1: a number is needed"),
        ("age,workclass\n1_0,a\n", "age: row 1: a number is needed"),
        ("age,workclass\n1\n", "{path}: row 1 has 1 cells, the header has 2"),
        (
            "Age,workclass\n1,a\n",
            '{path}: has no column named age, which the server asks for; there is "Age"',
        ),
        (
            'age,workclass\n1,"a\n',
            "{path}: is not well-formed CSV: a quote is stray, or never closed",
        ),
        (
            f"age,workclass\n1,{'a' * 140_000}\n",
            "{path}: has a cell above 131072 characters, or a quote that is never closed",
        ),
        ("age,workclass\n1,\xff\n", "{path}: is not a CSV in UTF-8: set --encoding"),
        (
            "Age;workclass\n1;a\n",
            f"{{path}}: the header looks {SEMICOLONS}",
        ),
    ],
)
def test_a_bad_file_is_one_line_and_nothing_is_asked(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    """The whole file is read before its first row is asked."""
    path = tmp_path / "bad.csv"
    path.write_text(text, "latin-1")
    assert run(["query", "--url", URL, str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"conclave: {line.format(path=path)}\n"
    assert captured.out == ""
    assert server.asked == []


def test_does_not_overwrite_its_input(
    server: Server, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The input is still there after a slip of the hand."""
    before = table.read_bytes()
    assert run(["query", "--url", URL, str(table), "-o", str(table)]) == 2
    expected = f"conclave: --output: {table} is the input; write to another file\n"
    assert capsys.readouterr().err == expected
    assert table.read_bytes() == before
    assert server.keys == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://"])
def test_no_server_is_one_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An address that nobody answers at, or that is none, ends with exit code 2."""
    assert run(["query", "--url", url, "in.csv"]) == 2
    assert capsys.readouterr().err == f"conclave: --url: no server answers at {url}\n"


def lines(count: int) -> list[bytes]:
    """Return ``count`` queries."""
    return [json.dumps({"features": [age, "a"]}).encode() + b"\n" for age in range(count)]


def client(server: Server, pauses: list[float] | None = None) -> QueryClient:
    """Return a client that notes its pauses instead of taking them."""
    note = pauses.append if pauses is not None else lambda _: None
    return QueryClient(URL, None, transport=server, pause=note)


def test_goes_on_where_a_connection_broke() -> None:
    """Only what has no reply is asked again, after longer and longer pauses."""
    pauses: list[float] = []
    server = Server(2, 0, httpx.Response(503, json=OPENING))
    replies = client(server, pauses).ask(lines(4))
    assert [reply["query_id"] for reply in replies] == [1, 2, 5, 6]
    assert [features[0] for features in server.asked] == [0, 1, 2, 2, 2, 3]
    assert pauses == [0.5, 1.0, 2.0]


def test_asks_again_for_lines_that_may_come_back() -> None:
    """A 503 in a line's place is not its last word; another problem is."""
    stream = json.dumps(OPENING).encode() + b"\n" + json.dumps(EXHAUSTED).encode() + b"\n"
    server = Server(httpx.Response(200, content=stream))
    replies = client(server).ask(lines(2))
    assert replies[0]["query_id"] == 1
    assert replies[1] == EXHAUSTED
    assert [features[0] for features in server.asked] == [0]


def test_gives_up_on_a_server_that_is_gone() -> None:
    """After the last attempt one line says so."""
    server = Server(*[0] * ATTEMPTS_MAX)
    with pytest.raises(ConfigurationError, match="stopped answering"):
        client(server).ask(lines(1))


def test_keeps_a_refusal_that_does_not_pass() -> None:
    """A line that is refused with 503 to the end keeps that refusal."""
    stream = json.dumps(OPENING).encode() + b"\n"
    server = Server(*[httpx.Response(200, content=stream) for _ in range(ATTEMPTS_MAX)])
    assert client(server).ask(lines(1)) == [OPENING]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (httpx.Response(401, json={"status": 401, "detail": "send a key"}), "send a key"),
        (httpx.Response(200, text="<html>"), "what answers there is no Conclave server"),
        (httpx.Response(200, json=[]), "what answers there is no Conclave server"),
        (httpx.Response(302, headers={"Location": "/x"}), "no Conclave server"),
    ],
)
def test_says_what_the_server_said(reply: httpx.Response, told: str) -> None:
    """A refusal is passed on in the server's words."""
    transport = httpx.MockTransport(lambda _: reply)
    with pytest.raises(ConfigurationError, match=told):
        QueryClient(URL, None, transport=transport).schema()


def test_scores_have_columns_of_their_own(
    server: Server, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server of scores adds four columns; the precision goes with every row that is asked."""
    server.precision = 10
    assert run(["query", "--url", URL, "--precision", "2", str(table)]) == 0
    assert server.precisions == [2, 2, 2]
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].endswith("replayed,score,bin_lower,bin_upper,precision")
    assert lines[1].endswith("true,ensemble,false,0.25,0.0,0.5,2")
    assert lines[3].endswith("false,ensemble,false,,,,2")


def test_a_precision_needs_a_server_of_scores(
    server: Server, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where labels are answered the option is refused before anything is asked."""
    assert run(["query", "--url", URL, "--precision", "2", str(table)]) == 2
    assert "--precision" in capsys.readouterr().err
    assert server.asked == []
