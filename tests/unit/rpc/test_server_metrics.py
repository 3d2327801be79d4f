"""Every call is counted by how it ended, streams too."""

from collections.abc import AsyncIterator

import grpc
import pytest
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import (
    SandboxServiceServicer,
    SandboxServiceStub,
    add_SandboxServiceServicer_to_server,
)
from prometheus_client import REGISTRY

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer


class Servicer(SandboxServiceServicer):
    async def DestroySandboxes(
        self, request: pb.DestroySandboxesRequest, context: grpc.ServicerContext
    ) -> pb.DestroySandboxesResponse:
        if not request.sandbox_ids:
            raise JourneymanError(ErrorCode.NOT_FOUND, "none named")
        if request.sandbox_ids[0] == "bug":
            raise KeyError("bug")
        return pb.DestroySandboxesResponse()

    async def Exec(self, request: pb.ExecRequest, context: grpc.ServicerContext) -> AsyncIterator[pb.ExecResponse]:
        yield pb.ExecResponse(stdout=b"piece")
        if request.run.sandbox_id == "gone":
            raise JourneymanError(ErrorCode.NOT_FOUND, "gone")


def num_calls(method: str, status: str) -> float:
    labels = {"method": f"/jm.sandbox.v1.SandboxService/{method}", "status": status}
    name = next(
        metric.name for metric in REGISTRY.collect() if "rpc" in metric.name and metric.name.endswith("seconds")
    )
    return REGISTRY.get_sample_value(f"{name}_count", labels) or 0.0


@pytest.mark.parametrize(
    ("method", "named", "status"),
    [
        ("DestroySandboxes", "one", "ok"),
        ("DestroySandboxes", "", "not_found"),
        ("DestroySandboxes", "bug", "internal"),
        ("Exec", "one", "ok"),
        ("Exec", "gone", "not_found"),
    ],
)
async def test_a_call_is_counted_by_how_it_ended(method: str, named: str, status: str) -> None:
    server = RpcServer("127.0.0.1:0")
    server.add(add_SandboxServiceServicer_to_server, Servicer(), "jm.sandbox.v1.SandboxService")
    await server.start()
    before = num_calls(method, status)
    async with channel(f"127.0.0.1:{server.port}") as connection:
        stub = SandboxServiceStub(connection)
        try:
            if method == "Exec":
                async for _ in stub.Exec(pb.ExecRequest(run=pb.RunRequest(sandbox_id=named))):
                    pass
            else:
                await stub.DestroySandboxes(pb.DestroySandboxesRequest(sandbox_ids=[named] if named else []))
        except (JourneymanError, grpc.aio.AioRpcError):
            assert status != "ok"
    await server.stop(0.0)
    assert num_calls(method, status) == before + 1
