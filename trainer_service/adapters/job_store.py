"""Jobs and checkpoints in the object store, below checkpoints/JOB/."""

import hashlib
import json
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects
from journeyman.records import ObjectRef
from trainer_service.core.lineage import Life
from trainer_service.core.records import Job

_JOB = TypeAdapter(Job)
_LIFE = TypeAdapter(Life)
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
        # The digest in the name: a life that does a step again must not replace what the stored state still names.
        digest = hashlib.sha256(tensors).hexdigest()
        ref = await self._objects.put(f"{folder}/tensors-{step:06d}-{digest[:12]}.pt", tensors)
        document = {**state, "step": step, "tensors": ref.uri, "sha256": ref.sha256, "num_bytes": ref.num_bytes}
        await self._objects.put(f"{folder}/checkpoint.json", json.dumps(document).encode())
        others = [key for key in await self._objects.list(f"{folder}/tensors-") if key != ref.uri]
        for key in others[: 1 - KEPT_CHECKPOINTS]:
            await self._objects.delete(key)

    async def load_checkpoint(self, job_id: str) -> tuple[bytes, Mapping[str, object]] | None:
        """The newest; None before the first."""
        try:
            state = json.loads(await self._objects.get(f"checkpoints/{job_id}/checkpoint.json"))
        except JourneymanError as error:
            if error.code is ErrorCode.NOT_FOUND:
                return None
            raise
        ref = ObjectRef(uri=state["tensors"], sha256=state["sha256"], num_bytes=state["num_bytes"])
        return await self._objects.get_checked(ref), state

    async def save_life(self, job_id: str, life: Life) -> None:
        """Replaces it."""
        await self._objects.put(f"checkpoints/{job_id}/life.json", _LIFE.dump_json(life, indent=1))

    async def load_life(self, job_id: str) -> Life | None:
        """None before the first."""
        key = f"checkpoints/{job_id}/life.json"
        if not await self._objects.exists(key):
            return None
        try:
            return _LIFE.validate_json(await self._objects.get(key))
        except ValidationError as error:
            raise JourneymanError(ErrorCode.CORRUPT, f"{key} is no life: {error.errors()[0]['msg']}") from error


def _read_job(key: str, data: bytes) -> Job:
    try:
        return _JOB.validate_json(data)
    except ValidationError as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"{key} is no job: {error.errors()[0]['msg']}") from error
