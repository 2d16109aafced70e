"""The unmodified gRPC client of Triton against a real server: plain and asyncio, up to its end."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as asynchronous
from tritonclient.utils import InferenceServerException

from app.cli.keys import write_keys
from app.http.access.keys import Key, Role, hash_of
from tests.builders.server.http_release import agreed, agreed_label, split
from tests.builders.server.inference_clients import NUMERIC_NAME, serving_numbers
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.builders.server.http_release import SmallRelease
    from tests.builders.server.server_process import ServerProcess

MODEL = "members"
OUTPUTS = ("label", "stable", "query_id")
ON_A_FREE_PORT = {"CONCLAVE_SERVER__GRPC_PORT": "0"}
NUMBER_TYPES = (np.float64, np.float32, np.float16, np.int64, np.int8, np.uint16)
# A server that is asked to end has this long.
END_SECONDS_MAX = 10.0
CLIENTS = 8


@pytest.fixture(scope="module")
def opened(
    opened_releases: Callable[[str], SmallRelease], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], SmallRelease]:
    """Return what copies the small release of an age and a group, which halts at its end."""
    release = opened_releases('{"answers": {"after": "\\"halt\\""}}')
    return lambda name: release.copy_to(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="module")
def members(opened: Callable[[str], SmallRelease]) -> Iterator[ServerProcess]:
    """Serve that release without keys."""
    with serving(opened("members").config, environ=ON_A_FREE_PORT) as server:
        yield server.wait_until_ready()


@pytest.fixture
def client(members: ServerProcess) -> Iterator[triton.InferenceServerClient]:
    """Return a client of it."""
    with triton.InferenceServerClient(members.grpc_address) as connected:
        yield connected


def columns(*rows: Sequence[object]) -> list[Any]:
    """Return the inputs of rows of an age and a group."""
    ages, groups = zip(*rows, strict=True)
    age = triton.InferInput("age", [len(rows), 1], "FP64")
    age.set_data_from_numpy(np.array(ages, np.float64).reshape(-1, 1))
    group = triton.InferInput("group", [len(rows), 1], "BYTES")
    group.set_data_from_numpy(np.array(groups, np.object_).reshape(-1, 1))
    return [age, group]


def numbers_of(result: Any) -> list[int]:
    """Return the numbers of a result's answers."""
    numbers: list[int] = result.as_numpy("query_id").tolist()
    return numbers


def test_finds_server_and_model(client: triton.InferenceServerClient) -> None:
    """Every probe and description that the client asks for is there."""
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(MODEL)
    assert not client.is_model_ready("another")
    assert client.get_server_metadata().name == "conclave"
    described = client.get_model_metadata(MODEL)
    assert [each.name for each in described.inputs] == ["age", "group"]
    assert [each.name for each in described.outputs] == list(OUTPUTS)


@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_asks_and_is_answered(
    client: triton.InferenceServerClient, members: ServerProcess, compression: str | None
) -> None:
    """A batch is answered in every form that the client can send, on the ledger of HTTP."""
    asked = [triton.InferRequestedOutput(name) for name in OUTPUTS]
    result = client.infer(
        MODEL,
        columns(agreed(1), agreed(2)),
        request_id="a-1",
        outputs=asked,
        compression_algorithm=compression,
    )
    labels = [each.decode() for each in result.as_numpy("label")]
    assert labels == [agreed_label(1), agreed_label(2)]
    assert result.as_numpy("stable").tolist() == [True, True]
    assert numbers_of(result) == [1, 2]
    assert result.get_response().id == "a-1"
    replay = httpx.post(f"{members.address}/query", json={"features": agreed(2)}).json()
    assert (replay["query_id"], replay["replayed"]) == (2, True)


def test_is_told_what_is_wrong(client: triton.InferenceServerClient) -> None:
    """The text of a refusal and its code reach the caller."""
    with pytest.raises(InferenceServerException, match="age: must be a finite number") as refused:
        client.infer(MODEL, columns((float("nan"), "common")))
    assert refused.value.status() == "StatusCode.INVALID_ARGUMENT"
    with pytest.raises(InferenceServerException, match="there is no such model"):
        client.infer("another", columns(agreed(1)))


def test_a_halt_in_a_batch(client: triton.InferenceServerClient) -> None:
    """Rows after the last unstable answer are empty, then new ones are refused, and others not."""
    splits = [split(number) for number in range(1, 12)]
    result = client.infer(MODEL, columns(agreed(1), *splits, agreed(4)))
    assert (numbers_of(result)[0], numbers_of(result)[-1]) == (1, 0)
    assert result.as_numpy("label")[-1] == b""
    with pytest.raises(InferenceServerException, match="has halted") as refused:
        client.infer(MODEL, columns(agreed(5)))
    assert refused.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
    assert numbers_of(client.infer(MODEL, columns(agreed(1)))) == [1]


async def ask_numbers(address: str) -> list[list[int]]:
    """Ask by the asyncio client, in every number type it has."""
    async with asynchronous.InferenceServerClient(address) as client:
        assert await client.is_model_ready(NUMERIC_NAME)
        asked = []
        for kind in NUMBER_TYPES:
            rows = np.array([[1, 0], [0, 1]], kind)
            given = asynchronous.InferInput("features", rows.shape, triton.np_to_triton_dtype(kind))
            given.set_data_from_numpy(rows)
            asked.append(numbers_of(await client.infer(NUMERIC_NAME, [given])))
        return asked


def test_a_matrix_of_every_type_is_the_same_queries(tmp_path: Path) -> None:
    """One and zero are the same vector in every type, so that they are charged once."""
    with serving_numbers(tmp_path, ON_A_FREE_PORT) as server:
        assert asyncio.run(ask_numbers(server.grpc_address)) == [[1, 2]] * len(NUMBER_TYPES)


def test_keys_open_and_limit(opened: Callable[[str], SmallRelease]) -> None:
    """A key of another role, none, and one at its limit are refused, each by its code."""
    release = opened("keys")
    file = release.folder / "keys.toml"
    roles = {"web": Role.QUERY, "desk": Role.READ}
    limits = {"web": 1, "desk": None}
    write_keys(
        file,
        [
            Key(name=name, role=roles[name], hash=hash_of(name), limit=limits[name])
            for name in roles
        ],
    )
    environ = ON_A_FREE_PORT | {"CONCLAVE_SERVER__KEYS_FILE": str(file)}
    codes = []
    with (
        serving(release.config, environ=environ) as server,
        triton.InferenceServerClient(server.wait_until_ready().grpc_address) as client,
    ):
        assert client.is_model_ready(MODEL)
        for headers in ({}, {"authorization": "Bearer desk"}):
            with pytest.raises(InferenceServerException) as refused:
                client.infer(MODEL, columns(agreed(1)), headers=headers)
            codes.append(refused.value.status())
        web = {"authorization": "Bearer web"}
        assert numbers_of(client.infer(MODEL, columns(agreed(1), agreed(2)), headers=web)) == [1, 0]
        with pytest.raises(InferenceServerException, match="limit") as refused:
            client.infer(MODEL, columns(agreed(3)), headers=web)
        codes.append(refused.value.status())
    assert codes == [
        f"StatusCode.{name}"
        for name in ("UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED")
    ]


class Asking:
    """Clients that ask new vectors until the server is gone.

    Attributes:
        answered: the numbers of the answers, by the vector's.
        refusals: the codes of what was refused.

    """

    def __init__(self, address: str) -> None:
        """Know where to ask."""
        self._address = address
        self._next = iter(range(1, 10_000))
        self.answered: dict[int, int] = {}
        self.refusals: list[str] = []

    def ask(self) -> None:
        """Ask until a call is refused."""
        with triton.InferenceServerClient(self._address) as client:
            for number in self._next:
                try:
                    rows = columns(agreed(number))
                    (self.answered[number],) = numbers_of(client.infer(MODEL, rows))
                except InferenceServerException as refused:
                    self.refusals.append(refused.status())
                    return


def test_every_call_is_answered_or_refused_at_the_end(
    opened_releases: Callable[[str], SmallRelease], tmp_path: Path
) -> None:
    """SIGTERM amid calls: each is answered or told so, and every answer is in the ledger."""
    release = opened_releases('{"answers": {"queries": "2000"}}').copy_to(tmp_path / "ending")
    with serving(release.config, environ=ON_A_FREE_PORT) as server:
        asking = Asking(server.wait_until_ready().grpc_address)
        threads = [threading.Thread(target=asking.ask) for _ in range(CLIENTS)]
        for each in threads:
            each.start()
        while len(asking.answered) < CLIENTS:
            time.sleep(0.005)
        ended_at = time.monotonic() + END_SECONDS_MAX
        server.signal(signal.SIGTERM)
        for each in threads:
            each.join(ended_at - time.monotonic())
        assert not any(each.is_alive() for each in threads)
        assert server.wait(END_SECONDS_MAX) == 0
    assert len(asking.refusals) == CLIENTS
    assert set(asking.refusals) <= {"StatusCode.UNAVAILABLE", "StatusCode.CANCELLED"}
    vectors = [agreed(number) for number in asking.answered]
    with (
        serving(release.config, environ=ON_A_FREE_PORT) as server,
        triton.InferenceServerClient(server.wait_until_ready().grpc_address) as client,
    ):
        again = numbers_of(client.infer(MODEL, columns(*vectors)))
    assert again == list(asking.answered.values())
