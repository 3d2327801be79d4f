"""Stubs to the services of a quickstart, and patience with one that is being restarted.

Called by the pipeline and the sampler. Every call the pipeline makes may be repeated, because its ids are fixed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from jm.registry.v1.registry_pb2_grpc import RegistryServiceStub
from jm.rollout.v1.rollout_pb2_grpc import RolloutServiceStub
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceStub
from jm.trainer.v1.trainer_pb2_grpc import TrainerServiceStub

from journeyman.errors import JourneymanError
from journeyman.rpc.client import channel

T = TypeVar("T")

PATIENCE_S = 120.0
"""A restarted trainer imports torch and reads its checkpoint before it answers."""
RETRY_S = 0.25


class Cluster:
    """One channel and one stub a service."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._channels = {name: channel(target) for name, target in targets.items()}
        self.scheduler = SchedulerServiceStub(self._channels["scheduler"])
        self.rollout = RolloutServiceStub(self._channels["rollout"])
        self.sandbox = SandboxServiceStub(self._channels["sandbox"])
        self.trainer = TrainerServiceStub(self._channels["trainer"])
        self.registry = RegistryServiceStub(self._channels["registry"])

    async def close(self) -> None:
        """Closes the channels."""
        await asyncio.gather(*(one.close(None) for one in self._channels.values()))


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """The answer; a retryable failure is tried again until PATIENCE_S have passed."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await call()
        except JourneymanError as error:
            if not error.retryable or time.monotonic() > deadline:
                raise
        await asyncio.sleep(RETRY_S)
