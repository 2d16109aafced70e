"""The unmodified client of Triton against a real server: JSON and binary, plain and asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as asynchronous
from tritonclient.utils import InferenceServerException

from tests.builders.server.http_release import agreed, agreed_label, split
from tests.builders.server.inference_clients import NUMERIC_NAME, serving_numbers
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tests.builders.server.http_release import SmallRelease
    from tests.builders.server.server_process import ServerProcess

MODEL = "members"
OUTPUTS = ("label", "stable", "query_id")


@pytest.fixture(scope="module")
def members(
    opened_releases: Callable[[str], SmallRelease], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """Serve the small release of an age and a group, 40 answers and 3 unstable ones."""
    release = opened_releases('{"answers": {"after": "\\"halt\\""}}')
    with serving(release.copy_to(tmp_path_factory.mktemp("members")).config) as server:
        yield server.wait_until_ready()


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Serve a release of numbers alone."""
    with serving_numbers(tmp_path_factory.mktemp("numbers")) as server:
        yield server


@pytest.fixture
def client(members: ServerProcess) -> Iterator[triton.InferenceServerClient]:
    """Return a client of the small release."""
    with triton.InferenceServerClient(members.address.removeprefix("http://")) as connected:
        yield connected


def columns(*rows: Sequence[object], module: Any = triton, binary: bool = True) -> list[Any]:
    """Return the inputs of rows of an age and a group."""
    ages, groups = zip(*rows, strict=True)
    age = module.InferInput("age", [len(rows), 1], "FP64")
    age.set_data_from_numpy(np.array(ages, np.float64).reshape(-1, 1), binary_data=binary)
    group = module.InferInput("group", [len(rows), 1], "BYTES")
    group.set_data_from_numpy(np.array(groups, np.object_).reshape(-1, 1), binary_data=binary)
    return [age, group]


def outputs(result: Any) -> dict[str, list[Any]]:
    """Return a result's outputs, texts decoded."""
    arrays: dict[str, NDArray[Any]] = {name: result.as_numpy(name) for name in OUTPUTS}
    values = {name: array.tolist() for name, array in arrays.items()}
    # The client gives bytes where it was sent bytes, and text where it was sent JSON.
    labels = [each.decode() if isinstance(each, bytes) else each for each in values["label"]]
    return values | {"label": labels}


def test_finds_server_and_model(client: triton.InferenceServerClient) -> None:
    """Every probe and description that the client asks for is there."""
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(MODEL)
    assert not client.is_model_ready("another")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    described = client.get_model_metadata(MODEL)
    assert [each["name"] for each in described["inputs"]] == ["age", "group"]
    assert [each["name"] for each in described["outputs"]] == list(OUTPUTS)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_asks_and_is_answered(
    client: triton.InferenceServerClient, *, binary: bool, compression: str | None
) -> None:
    """The same batch gets the same answers in every form that the client can send it in."""
    asked = [triton.InferRequestedOutput(name, binary_data=binary) for name in OUTPUTS]
    result = client.infer(
        MODEL,
        columns(agreed(1), agreed(2), binary=binary),
        request_id="a-1",
        outputs=asked,
        request_compression_algorithm=compression,
        response_compression_algorithm=compression,
    )
    answers = outputs(result)
    assert answers["label"] == [agreed_label(1), agreed_label(2)]
    assert answers["stable"] == [True, True]
    assert answers["query_id"] == [1, 2]
    assert result.get_response()["id"] == "a-1"


def test_asks_for_everything_by_default(client: triton.InferenceServerClient) -> None:
    """Without requested outputs the client wants all, binary."""
    result = client.infer(MODEL, columns(agreed(1), agreed(2)))
    assert outputs(result)["query_id"] == [1, 2]
    assert "binary_data_size" in result.get_output("label")["parameters"]


def test_requests_run_beside_each_other(client: triton.InferenceServerClient) -> None:
    """The client's own concurrency asks the same vectors at once, and each has one number."""
    handles = [client.async_infer(MODEL, columns(agreed(1), agreed(2))) for _ in range(4)]
    assert all(outputs(each.get_result())["query_id"] == [1, 2] for each in handles)


def test_is_told_what_is_wrong(client: triton.InferenceServerClient) -> None:
    """The text of a refusal and its status reach the caller."""
    with pytest.raises(InferenceServerException, match="age: must be a finite number") as refused:
        client.infer(MODEL, columns((float("nan"), "common")))
    assert refused.value.status() == "422"
    with pytest.raises(InferenceServerException, match="there is no such model"):
        client.infer("another", columns(agreed(1)))
    with pytest.raises(InferenceServerException, match="there is no such path"):
        client.get_model_config(MODEL)


async def ask_numbers(address: str) -> list[list[Any]]:
    """Ask by the asyncio client, in every number type it has, binary and JSON."""
    numbers: list[list[Any]] = []
    async with asynchronous.InferenceServerClient(address) as client:
        assert await client.is_server_ready()
        assert await client.is_model_ready(NUMERIC_NAME)
        for kind in (np.float64, np.float32, np.float16, np.int64, np.int8, np.uint16):
            for binary in (True, False):
                if kind is np.float16 and not binary:
                    continue  # the client refuses to send it
                rows = np.array([[1, 0], [0, 1]], kind)
                given = asynchronous.InferInput(
                    "features", rows.shape, triton.np_to_triton_dtype(kind)
                )
                given.set_data_from_numpy(rows, binary_data=binary)
                numbers.append(outputs(await client.infer(NUMERIC_NAME, [given]))["query_id"])
    return numbers


def test_a_matrix_of_every_type_is_the_same_queries(numbers: ServerProcess) -> None:
    """One and zero are the same vector in every type, so that they are charged once."""
    assert asyncio.run(ask_numbers(numbers.address.removeprefix("http://"))) == [[1, 2]] * 11


def test_a_halt_in_a_batch(client: triton.InferenceServerClient) -> None:
    """The third unstable answer is given, later rows are empty, and then new ones are refused."""
    splits = [split(number) for number in range(1, 12)]
    answers = outputs(client.infer(MODEL, columns(agreed(1), *splits, agreed(4))))
    given = [number for number in answers["query_id"] if number]
    unstable = [
        not stable
        for stable, number in zip(answers["stable"], answers["query_id"], strict=True)
        if number
    ]
    assert given == [1, *range(3, 2 + len(given))]
    assert sum(unstable) == 3
    assert unstable[-1]
    assert answers["label"][-1] == ""
    assert answers["stable"][-1] is False
    assert answers["query_id"][-1] == 0
    with pytest.raises(InferenceServerException, match="has halted") as refused:
        client.infer(MODEL, columns(agreed(5)))
    assert refused.value.status() == "410"
    assert outputs(client.infer(MODEL, columns(agreed(2))))["query_id"] == [2]
