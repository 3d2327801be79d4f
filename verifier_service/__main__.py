"""Composition root of the verifier: settings -> adapters -> app -> edges."""

from collections.abc import Awaitable, Callable

from jm.verifier.v1.verifier_pb2_grpc import add_VerifierServiceServicer_to_server

from journeyman.boxes.client import SandboxBoxes
from journeyman.bus.connect import open_bus
from journeyman.bus.consumer import ConsumerLoop
from journeyman.lifecycle import Assembly, run
from journeyman.objects.connect import open_objects
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from verifier_service.adapters.graders import Graders
from verifier_service.app import Verifier
from verifier_service.consumer import GROUP, TOPIC, RecordedConsumer
from verifier_service.execution import Execution
from verifier_service.servicer import VerifierServicer
from verifier_service.settings import VerifierSettings


async def build(settings: VerifierSettings) -> Assembly:
    """The service, ready to be run."""
    bus, objects = open_bus(settings.bus), open_objects(settings.objects)
    graders = Graders(settings.graders, timeout_s=settings.grader_timeout_s, memory_bytes=settings.grader_memory_bytes)
    close: list[Callable[[], Awaitable[None]]] = [graders.close, bus.close]
    execution = None
    if settings.sandbox is not None:
        to_sandbox = channel(settings.sandbox)
        close.append(lambda: to_sandbox.close(None))
        execution = Execution(
            SandboxBoxes(to_sandbox),
            patience_s=settings.patience_s,
            timeout_s=settings.box_timeout_s,
            lease_s=settings.box_lease_s,
        )
    app = Verifier(objects, graders, execution)
    server = RpcServer(settings.listen)
    server.add(add_VerifierServiceServicer_to_server, VerifierServicer(app), "jm.verifier.v1.VerifierService")
    loop = ConsumerLoop(bus, GROUP, batch_handlers={TOPIC: RecordedConsumer(app, bus).handle}, dedup=False)
    return Assembly(server=server, background=[loop.run], drain=None, close=close)


if __name__ == "__main__":
    run("verifier", VerifierSettings, build)
