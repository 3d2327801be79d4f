"""Composition root of the scheduler: settings -> ledger, packs and bus -> app -> edges -> lifecycle."""

import asyncio

from jm.scheduler.v1.scheduler_pb2_grpc import add_SchedulerServiceServicer_to_server

from journeyman import lifecycle
from journeyman.bus.connect import open_bus
from journeyman.bus.consumer import ConsumerLoop
from journeyman.rpc.server import RpcServer
from scheduler_service.adapters.ledger import SqlLedger
from scheduler_service.adapters.outbox import OutboxRelay
from scheduler_service.adapters.pack_tasks import PackTasks
from scheduler_service.adapters.sql_engine import open_engine
from scheduler_service.app import Scheduler
from scheduler_service.consumer import batch_handlers, handlers
from scheduler_service.facts import to_outgoing
from scheduler_service.servicer import SchedulerServicer
from scheduler_service.settings import SchedulerSettings


async def build(settings: SchedulerSettings) -> lifecycle.Assembly:
    """Wires the service."""
    ledger = SqlLedger(await open_engine(settings.ledger))
    bus = open_bus(settings.bus)
    app = Scheduler(ledger, PackTasks(), to_outgoing)
    await app.load()
    server = RpcServer(settings.listen)
    server.add(
        add_SchedulerServiceServicer_to_server,
        SchedulerServicer(app, settings.lease_wait_s),
        "jm.scheduler.v1.SchedulerService",
    )
    consumer = ConsumerLoop(bus, "scheduler", handlers(app), batch_handlers=batch_handlers(app))

    async def tick(stop: asyncio.Event) -> None:
        await app.run_ticker(stop, settings.tick_s)

    return lifecycle.Assembly(
        server=server,
        background=[consumer.run, OutboxRelay(ledger, bus, app.facts_stored).run, tick],
        drain=app.drain,
        close=[bus.close, ledger.close],
    )


if __name__ == "__main__":
    lifecycle.run("scheduler", SchedulerSettings, build)
