"""Composition root of the sandbox service: settings -> isolation that works here -> app -> gRPC edge -> lifecycle."""

import logging
import os

import click
from jm.sandbox.v1.sandbox_pb2_grpc import add_SandboxServiceServicer_to_server

from journeyman import lifecycle
from journeyman.rpc.server import RpcServer
from sandbox_service.adapters.box_logs import remove_stale_logs
from sandbox_service.adapters.isolation import IsolationChoice, open_backend
from sandbox_service.app import Sandboxes
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape
from sandbox_service.servicer import SandboxServicer
from sandbox_service.settings import SandboxSettings

log = logging.getLogger(__name__)


async def build(settings: SandboxSettings) -> lifecycle.Assembly:
    """Wires the service. The maker of boxes is a process of its own, started before this one has any thread."""
    remove_stale_logs()
    backend = await open_backend(
        IsolationChoice(
            isolation=settings.isolation,
            allow_weak=settings.allow_weak,
            uid_first=settings.uid_first,
            python=settings.python,
            max_spares=settings.max_spares,
        )
    )
    log.info("isolation", extra={"isolation": backend.isolation, "not_enforced": list(backend.not_enforced)})
    app = Sandboxes(backend, max_boxes=settings.max_boxes, num_parallel=settings.parallel_runs)
    shape = BoxShape(
        memory_bytes=settings.memory_bytes,
        max_processes=settings.max_processes,
        disk_bytes=settings.disk_bytes,
        max_files=settings.max_files,
        output_bytes=settings.output_bytes,
    )
    limits = Program(timeout_s=settings.timeout_s, cpu_s=settings.cpu_s)
    server = RpcServer(settings.listen)
    server.add(
        add_SandboxServiceServicer_to_server, SandboxServicer(app, shape, limits), "jm.sandbox.v1.SandboxService"
    )
    return lifecycle.Assembly(server=server, background=[app.end_expired], drain=None, close=[app.close])


@click.command()
@click.option("--allow-weak", is_flag=True, help="Run programs almost unprotected where nothing better works.")
def main(allow_weak: bool) -> None:
    """Runs the sandbox service. Settings come from SANDBOX_* in the environment."""
    if allow_weak:
        os.environ["SANDBOX_ALLOW_WEAK"] = "true"
    lifecycle.run("sandbox", SandboxSettings, build)


if __name__ == "__main__":
    main()
