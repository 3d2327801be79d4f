"""Jobs and checkpoints in the object store, below checkpoints/JOB/."""

import json
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects
from trainer_service.core.records import Job

_JOB = TypeAdapter(Job)
KEPT_CHECKPOINTS = 2


class ObjectJobStore:
    """See ports.JobStore."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def jobs(self) -> list[Job]:
        """In order of arrival."""
        keys = [key for key in await self._objects.list("checkpoints/") if key.endswith("/job.json")]
        return sorted([_read_job(key, await self._objects.get(key)) for key in keys], key=lambda job: job.number)

    async def save_job(self, job: Job) -> None:
        """Replaces the job's record."""
        await self._objects.put(f"checkpoints/{job.job_id}/job.json", _JOB.dump_json(job, indent=1))

    async def save_checkpoint(self, job_id: str, step: int, tensors: bytes, state: Mapping[str, object]) -> None:
        """Tensors, then the state that names them, then old tensors are removed."""
        folder = f"checkpoints/{job_id}"
        ref = await self._objects.put(f"{folder}/tensors-{step:06d}.pt", tensors)
        document = {**state, "step": step, "tensors": ref.uri, "sha256": ref.sha256}
        await self._objects.put(f"{folder}/checkpoint.json", json.dumps(document).encode())
        kept = sorted(key for key in await self._objects.list(f"{folder}/tensors-"))[-KEPT_CHECKPOINTS:]
        for key in await self._objects.list(f"{folder}/tensors-"):
            if key not in kept:
                await self._objects.delete(key)

    async def load_checkpoint(self, job_id: str) -> tuple[bytes, Mapping[str, object]] | None:
        """The newest; None before the first."""
        try:
            state = json.loads(await self._objects.get(f"checkpoints/{job_id}/checkpoint.json"))
        except JourneymanError as error:
            if error.code is ErrorCode.NOT_FOUND:
                return None
            raise
        return await self._objects.get(state["tensors"]), state


def _read_job(key: str, data: bytes) -> Job:
    try:
        return _JOB.validate_json(data)
    except ValidationError as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"{key} is no job: {error.errors()[0]['msg']}") from error
