"""gRPC edge of the trainer."""

from typing import Any

from jm.trainer.v1 import trainer_pb2 as pb
from jm.trainer.v1 import trainer_pb2_grpc

from trainer_service.app import Trainer
from trainer_service.convert import job_to_proto, spec_from_proto


class TrainerServicer(trainer_pb2_grpc.TrainerServiceServicer):
    """Convert in, call the app, convert out."""

    def __init__(self, app: Trainer) -> None:
        self._app = app

    async def StartJob(self, request: pb.StartJobRequest, context: Any) -> pb.StartJobResponse:
        """See the proto."""
        job_id, kind = spec_from_proto(request.spec)
        return pb.StartJobResponse(job=job_to_proto(await self._app.start_job(job_id, kind)))

    async def GetJob(self, request: pb.GetJobRequest, context: Any) -> pb.GetJobResponse:
        """See the proto."""
        return pb.GetJobResponse(job=job_to_proto(self._app.job(request.job_id)))

    async def StopJob(self, request: pb.StopJobRequest, context: Any) -> pb.StopJobResponse:
        """See the proto."""
        return pb.StopJobResponse(job=job_to_proto(await self._app.stop_job(request.job_id)))
