"""Training jobs: accepted, run one after the other, told about, stopped. They are durable: a restarted trainer goes on with them."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

from journeyman.bus.port import Bus
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects
from journeyman.observe.logs import bound
from journeyman.records import PolicyRef
from trainer_service.adapters.bus import BusFacts, BusGroups
from trainer_service.adapters.recorded import ObjectTrajectories
from trainer_service.cold_start import ColdStart, Halt, Progress
from trainer_service.core.records import InitSpec, Job, JobKind, JobState, RlSpec, SftSpec
from trainer_service.initial import make_initial
from trainer_service.learner import ComputeThread
from trainer_service.ports import JobStore
from trainer_service.reinforce import Reinforcement

log = logging.getLogger(__name__)


class Trainer:
    """The application."""

    def __init__(
        self, objects: Objects, bus: Bus, store: JobStore, compute: ComputeThread, *, sft_threads: int, rl_threads: int
    ) -> None:
        self._objects, self._bus, self._store, self._compute = objects, bus, store, compute
        self._sft_threads, self._rl_threads = sft_threads, rl_threads
        self._jobs: dict[str, Job] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_draining = False

    async def load(self) -> None:
        """Reads the jobs of a former life; what was running waits to go on."""
        for job in await self._store.jobs():
            state = JobState.WAITING if job.state is JobState.RUNNING else job.state
            self._jobs[job.job_id] = replace(job, state=state)

    async def start_job(self, job_id: str, kind: JobKind) -> Job:
        """Accepts a job, or returns the one of that id. CONFLICT when its spec differs."""
        known = self._jobs.get(job_id)
        if known is not None:
            if known.kind != kind:
                raise JourneymanError(
                    ErrorCode.CONFLICT, f"job_id {job_id!r} exists with another spec; choose another id"
                )
            return known
        job = Job(job_id=job_id, kind=kind, number=len(self._jobs))
        await self._save(job)
        self._wake.set()
        return job

    def job(self, job_id: str) -> Job:
        """NOT_FOUND for an unknown id."""
        if job_id not in self._jobs:
            raise JourneymanError(ErrorCode.NOT_FOUND, f"no job {job_id!r}")
        return self._jobs[job_id]

    async def stop_job(self, job_id: str) -> Job:
        """Ends a running job after its current step; one that waits does not start."""
        job = self.job(job_id)
        if not job.state.is_over:
            job = replace(job, stop_requested=True)
            if job.state is JobState.WAITING:
                job = replace(job, state=JobState.STOPPED)
            await self._save(job)
        return job

    async def run(self, stop: asyncio.Event) -> None:
        """Works the jobs off in order of arrival."""
        ended = asyncio.ensure_future(stop.wait())
        while not stop.is_set() and not self._is_draining:
            waiting = [job for job in self._jobs.values() if job.state is JobState.WAITING]
            if waiting:
                self._idle.clear()
                await self._run(min(waiting, key=lambda job: job.number))
                self._idle.set()
                continue
            self._wake.clear()
            woken = asyncio.ensure_future(self._wake.wait())
            await asyncio.wait((woken, ended), return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
        ended.cancel()

    async def drain(self) -> None:
        """Lets the current step finish; the job goes on when the service starts again."""
        self._is_draining = True
        self._wake.set()
        await self._idle.wait()

    async def _run(self, job: Job) -> None:
        await self._save(replace(job, state=JobState.RUNNING))
        with bound(job_id=job.job_id):
            log.info("job started", extra={"kind": type(job.kind).__name__})
            try:
                ref = await self._dispatch(job.job_id, job.kind)
            except JourneymanError as error:
                if error.retryable:
                    raise
                log.error("job failed", exc_info=error)
                await self._save(replace(self._jobs[job.job_id], state=JobState.FAILED, error=error.message))
                return
            now = self._jobs[job.job_id]
            state = JobState.DONE
            if self._is_draining and not now.stop_requested and now.num_steps_done < _num_steps(job.kind):
                state = JobState.WAITING
            elif now.stop_requested:
                state = JobState.STOPPED
            await self._save(replace(now, state=state, policy=ref))
            log.info("job ended", extra={"state": state.value, "policy": ref.name})

    async def _dispatch(self, job_id: str, kind: JobKind) -> PolicyRef:
        facts = BusFacts(self._bus)
        match kind:
            case InitSpec():
                ref = await make_initial(job_id, kind, self._objects, self._compute, self._sft_threads)
                await facts.policy_published(ref, None, "init")
                return ref
            case SftSpec():
                sft = ColdStart(job_id, kind, self._objects, self._store, facts)
                return await sft.run(self._compute, self._sft_threads, self._progress(job_id))
            case RlSpec():
                rl = Reinforcement(
                    job_id,
                    kind,
                    objects=self._objects,
                    store=self._store,
                    facts=facts,
                    groups=BusGroups(self._bus, job_id),
                    trajectories=ObjectTrajectories(self._objects),
                )
                return await rl.run(self._compute, self._rl_threads, self._progress(job_id))

    def _progress(self, job_id: str) -> Progress:
        async def told(num_steps_done: int, metrics: Mapping[str, float]) -> Halt | None:
            job = self._jobs[job_id]
            self._jobs[job_id] = replace(job, num_steps_done=num_steps_done, metrics=metrics or job.metrics)
            if job.stop_requested:
                return Halt.STOP
            return Halt.PAUSE if self._is_draining else None

        return told

    async def _save(self, job: Job) -> None:
        self._jobs[job.job_id] = job
        await self._store.save_job(job)


def _num_steps(kind: JobKind) -> int:
    return 0 if isinstance(kind, InitSpec) else kind.num_steps
