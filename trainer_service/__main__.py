"""Composition root of the trainer: settings -> store and bus -> app -> edge -> lifecycle."""

from jm.trainer.v1.trainer_pb2_grpc import add_TrainerServiceServicer_to_server

from journeyman import lifecycle
from journeyman.bus.connect import open_bus
from journeyman.objects.connect import open_objects
from journeyman.rpc.server import RpcServer
from trainer_service.adapters.job_store import ObjectJobStore
from trainer_service.app import Trainer
from trainer_service.learner import ComputeThread
from trainer_service.servicer import TrainerServicer
from trainer_service.settings import TrainerSettings


async def build(settings: TrainerSettings) -> lifecycle.Assembly:
    """Wires the service."""
    bus, objects = open_bus(settings.bus), open_objects(settings.objects)
    compute = ComputeThread()
    app = Trainer(
        objects,
        bus,
        ObjectJobStore(objects),
        compute,
        sft_threads=settings.sft_threads,
        rl_threads=settings.rl_threads,
    )
    await app.load()
    server = RpcServer(settings.listen)
    server.add(add_TrainerServiceServicer_to_server, TrainerServicer(app), "jm.trainer.v1.TrainerService")
    return lifecycle.Assembly(server=server, background=[app.run], drain=app.drain, close=[bus.close])


if __name__ == "__main__":
    lifecycle.run("trainer", TrainerSettings, build)
