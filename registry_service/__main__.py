"""Composition root of the registry: settings -> ledger and scheduler -> app -> edges -> lifecycle."""

from jm.registry.v1.registry_pb2_grpc import add_RegistryServiceServicer_to_server
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceStub

from journeyman import lifecycle
from journeyman.bus.connect import open_bus
from journeyman.bus.consumer import ConsumerLoop
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from registry_service.adapters.outbox import OutboxRelay
from registry_service.adapters.scheduler_runs import RunLimits, SchedulerRuns
from registry_service.adapters.sql_engine import open_engine
from registry_service.adapters.sql_ledger import SqlLedger
from registry_service.app import Registry
from registry_service.consumer import handlers
from registry_service.convert import fact_of
from registry_service.servicer import RegistryServicer
from registry_service.settings import RegistrySettings


async def build(settings: RegistrySettings) -> lifecycle.Assembly:
    """Wires the service."""
    ledger = SqlLedger(await open_engine(settings.ledger))
    bus = open_bus(settings.bus)
    to_scheduler = channel(settings.scheduler)
    limits = RunLimits(
        admission_slots=settings.admission_slots, retry_budget=settings.retry_budget, lease_s=settings.lease_s
    )
    app = Registry(ledger, SchedulerRuns(SchedulerServiceStub(to_scheduler), limits), fact_of)
    server = RpcServer(settings.listen)
    server.add(add_RegistryServiceServicer_to_server, RegistryServicer(app), "jm.registry.v1.RegistryService")
    consumer = ConsumerLoop(bus, "registry", handlers(app))

    async def hang_up() -> None:
        await to_scheduler.close(None)

    return lifecycle.Assembly(
        server=server,
        background=[consumer.run, OutboxRelay(ledger, bus).run],
        drain=None,
        close=[hang_up, bus.close, ledger.close],
    )


if __name__ == "__main__":
    lifecycle.run("registry", RegistrySettings, build)
