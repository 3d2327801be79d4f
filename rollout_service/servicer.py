"""gRPC edge of the rollout service."""

import time

import grpc
from jm.rollout.v1 import rollout_pb2 as pb
from jm.rollout.v1.rollout_pb2_grpc import RolloutServiceServicer

from journeyman.convert import policy_ref_to_proto
from rollout_service.core.slot_time import SlotTime
from rollout_service.ports import BoxSource, Engine
from rollout_service.serving import Serving


class RolloutServicer(RolloutServiceServicer):
    """Answers from what the parts know of themselves."""

    def __init__(self, worker_id: str, engine: Engine, serving: Serving, slot_time: SlotTime, boxes: BoxSource) -> None:
        self._worker_id, self._engine, self._serving = worker_id, engine, serving
        self._slot_time, self._boxes = slot_time, boxes

    async def GetStatus(
        self, request: pb.GetStatusRequest, context: grpc.aio.ServicerContext[pb.GetStatusRequest, pb.GetStatusResponse]
    ) -> pb.GetStatusResponse:
        """What it plays, with which policy, how fast."""
        loaded, figures, slots = self._serving.loaded, self._engine.figures(), self._slot_time
        return pb.GetStatusResponse(
            worker_id=self._worker_id,
            policy=policy_ref_to_proto(loaded) if loaded else None,
            is_routable=loaded is not None,
            num_slots=slots.num_free + slots.num_busy,
            num_playing=slots.num_busy,
            sampled_tokens=figures.sampled_tokens,
            tokens_per_s=figures.tokens_per_s,
            entropy=figures.entropy,
            slot_use=[
                pb.SlotUse(cause=cause, seconds=seconds) for cause, seconds in slots.totals(time.monotonic()).items()
            ],
            isolation=self._boxes.isolation,
        )
