"""A service as the supervisor sees one: serves gRPC health, stops on SIGTERM. FAKE_MODE makes it misbehave."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


async def serve() -> None:
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(os.environ["FAKE_LISTEN"])
    await server.start()
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(0)


def note(text: str) -> None:
    with Path(os.environ["FAKE_NOTES"]).open("a") as notes:
        notes.write(f"{text}\n")


mode = os.environ["FAKE_MODE"]
if mode == "refuse":
    print("some warning", file=sys.stderr)
    print("fake: no isolation to be had; --allow-weak accepts that", file=sys.stderr)
    sys.exit(2)
if mode == "crash":
    print("Traceback: boom", file=sys.stderr)
    sys.exit(1)
asyncio.run(serve())
note(f"{os.environ['FAKE_NAME']} stopped")
