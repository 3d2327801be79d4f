"""Composition root of the rollout service: settings -> engine and clients -> worker -> edges -> lifecycle."""

import os
import secrets
import socket
import time
from functools import partial

from jm.rollout.v1.rollout_pb2_grpc import add_RolloutServiceServicer_to_server
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceStub

from journeyman import lifecycle
from journeyman.boxes.client import SandboxBoxes
from journeyman.bus.connect import open_bus
from journeyman.bus.consumer import ConsumerLoop
from journeyman.objects.connect import open_objects
from journeyman.objects.port import Objects
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from rollout_service.adapters.recorder import ObjectRecorder
from rollout_service.adapters.sandbox_boxes import SandboxBoxSource
from rollout_service.adapters.scheduler_leases import SchedulerLeases
from rollout_service.app import Worker, WorkerOptions
from rollout_service.consumer import PolicyBoard, batch_handlers
from rollout_service.core.slot_time import SlotTime
from rollout_service.engines.scripted import ScriptedEngine
from rollout_service.ports import Engine
from rollout_service.servicer import RolloutServicer
from rollout_service.serving import Serving
from rollout_service.settings import EngineKind, RolloutSettings


async def build(settings: RolloutSettings) -> lifecycle.Assembly:
    """Wires the service."""
    worker_id = settings.worker_id or f"rollout-{socket.gethostname()}-{os.getpid()}"
    bus, objects = open_bus(settings.bus), open_objects(settings.objects)
    to_scheduler, to_sandbox = channel(settings.scheduler), channel(settings.sandbox)
    sandbox = SandboxBoxes(to_sandbox)
    boxes = SandboxBoxSource(sandbox, settings.box_lease_s)
    engine = build_engine(settings, objects)
    recorder = ObjectRecorder(objects, bus, worker_id)
    board = PolicyBoard()
    slot_time = SlotTime(settings.slots, time.monotonic())
    serving = Serving(engine, board, recorder, slot_time)
    worker = Worker(
        leases=SchedulerLeases(SchedulerServiceStub(to_scheduler), worker_id),
        engine=engine,
        serving=serving,
        boxes=boxes,
        recorder=recorder,
        slot_time=slot_time,
        options=WorkerOptions(member_wall_s=settings.member_wall_s, drain_grace_s=settings.drain_grace_s),
    )
    # A group of its own for each process start: every worker reads all publications, from the first.
    policies = ConsumerLoop(bus, f"{worker_id}-{secrets.token_hex(4)}", batch_handlers=batch_handlers(board))
    server = RpcServer(settings.listen)
    servicer = RolloutServicer(worker_id, engine, serving, slot_time, boxes)
    server.add(add_RolloutServiceServicer_to_server, servicer, "jm.rollout.v1.RolloutService")
    return lifecycle.Assembly(
        server=server,
        background=[policies.run, serving.follow, worker.work, worker.renew],
        drain=worker.drain,
        close=[
            engine.close,
            sandbox.close,
            partial(to_scheduler.close, None),
            partial(to_sandbox.close, None),
            bus.close,
        ],
    )


def build_engine(settings: RolloutSettings, objects: Objects) -> Engine:
    """The engine of the settings. torch is imported only where it is asked for."""
    match settings.engine:
        case EngineKind.SCRIPTED:
            return ScriptedEngine(objects, max_tokens=settings.max_tokens, turn_s=settings.scripted_turn_s)
        case EngineKind.TORCH:
            from rollout_service.engines.torch_engine import TorchEngine, TorchEngineOptions

            options = TorchEngineOptions(
                num_slots=settings.slots,
                max_tokens=settings.max_tokens,
                num_threads=settings.threads,
                num_threads_pinned=settings.eval_threads,
                recompute_on_swap=settings.recompute_on_swap,
            )
            return TorchEngine(objects, options)


if __name__ == "__main__":
    lifecycle.run("rollout", RolloutSettings, build)
