"""Asks a server by KServe's unmodified clients, and prints what came as one JSON document.

Run by the tests in a process of its own: KServe needs older libraries than the project
has, which lie in a folder in front of them.

usage: ask_kserve.py ADDRESS MODEL GRPC_ADDRESS
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import grpc
import httpx
import numpy as np
from kserve import (
    InferenceGRPCClient,
    InferenceRESTClient,
    InferInput,
    InferRequest,
    RESTConfig,
)
from kserve.protocol.infer_type import RequestedOutput

AGES = [70.5, 10.0]
GROUPS = ["common", "common"]


def request(model: str, *, is_binary: bool, ages: list[float] = AGES) -> InferRequest:
    """Return a request of two rows, in JSON or with binary tensors."""
    age = InferInput("age", [2, 1], "FP64")
    age.set_data_from_numpy(np.array(ages).reshape(2, 1), binary_data=is_binary)
    group = InferInput("group", [2, 1], "BYTES")
    group.set_data_from_numpy(np.array(GROUPS, np.object_).reshape(2, 1), binary_data=is_binary)
    outputs = [RequestedOutput(name, {"binary_data": is_binary}) for name in ("label", "query_id")]
    return InferRequest(model, [age, group], request_id="a-1", request_outputs=outputs)


async def ask(address: str, model: str) -> dict[str, Any]:
    """Return what every call of the client gave."""
    async with InferenceRESTClient(RESTConfig(protocol="v2", verify=False)) as client:
        told: dict[str, Any] = {
            "live": await client.is_server_live(address),
            "ready": await client.is_server_ready(address),
            "model": await client.is_model_ready(address, model),
            "another": await client.is_model_ready(address, "another"),
        }
        for name, is_binary in (("json", False), ("binary", True)):
            reply = await client.infer(address, request(model, is_binary=is_binary), model)
            told[name] = {
                "id": reply.id,
                **{output.name: list(output.data) for output in reply.outputs},
            }
        try:
            await client.infer(address, request("another", is_binary=False), "another")
        except httpx.HTTPStatusError as error:
            told["refused"] = str(error)
    return told


async def call(address: str, model: str) -> dict[str, Any]:
    """Return what every call of the client of gRPC gave."""
    async with InferenceGRPCClient(address) as client:
        told: dict[str, Any] = {
            "live": await client.is_server_live(),
            "ready": await client.is_server_ready(),
            "model": await client.is_model_ready(model),
            "another": await client.is_model_ready("another"),
        }
        for name, is_binary in (("typed", False), ("raw", True)):
            reply = await client.infer(request(model, is_binary=is_binary))
            told[name] = {
                "id": reply.id,
                **{output.name: output.as_numpy().tolist() for output in reply.outputs},
            }
        try:
            await client.infer(request("another", is_binary=False))
        except grpc.RpcError as error:
            told["refused"] = error.code().name
    return told


async def ask_both(address: str, model: str, grpc_address: str) -> dict[str, Any]:
    """Return what both clients gave."""
    return {"rest": await ask(address, model), "grpc": await call(grpc_address, model)}


def text(value: object) -> str:
    """Return bytes as the text that they are."""
    assert isinstance(value, bytes)
    return value.decode()


if __name__ == "__main__":
    told_by_both = asyncio.run(ask_both(*sys.argv[1:]))
    sys.stdout.write(json.dumps(told_by_both, default=text) + "\n")
