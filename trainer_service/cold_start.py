"""The sft job: cold start on demonstrations, with checkpoints, resumed where it was."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

from journeyman.artefacts import MadeHow, build_policy, read_policy, store_policy
from journeyman.objects.port import Objects
from journeyman.packs.load import load_pack
from journeyman.records import PolicyRef, PolicyVersion
from trainer_service.core.demonstrations import sft_rows
from trainer_service.core.optim import cold_start_optimisers
from trainer_service.core.records import SftSpec
from trainer_service.core.sft import ADAM_LR, MUON_LR, batches, learning_factor, sft_step
from trainer_service.learner import ComputeThread, Learner
from trainer_service.ports import Facts, JobStore

log = logging.getLogger(__name__)
CHUNK_STEPS = 10
"""Steps done in one visit to the compute thread: progress is told, and a stop is heeded, in between."""


class Halt(StrEnum):
    """Why to leave a job before its last step."""

    STOP = "stop"
    """It is over."""
    PAUSE = "pause"
    """The process ends; the job goes on in its next life."""


Progress = Callable[[int, Mapping[str, float]], Awaitable[Halt | None]]
"""(steps done, figures) -> whether and why to leave the job; empty figures only ask."""


class ColdStart:
    """One sft job."""

    def __init__(self, job_id: str, spec: SftSpec, objects: Objects, store: JobStore, facts: Facts) -> None:
        self._job_id, self._spec, self._objects, self._store, self._facts = job_id, spec, objects, store, facts

    async def run(self, compute: ComputeThread, threads: int, progress: Progress) -> PolicyRef:
        """Trains to the end or to a stop; publishes and returns the policy."""
        spec = self._spec
        base = await read_policy(self._objects, spec.base)
        learner = Learner(
            base.model.train(), base.tokenizer, cold_start_optimisers(base.model, MUON_LR, ADAM_LR), (MUON_LR, ADAM_LR)
        )
        done = await self._restore(learner)
        packs = [load_pack(name) for name in spec.domains]
        rows = await compute.run(lambda: sft_rows(packs, base.tokenizer, spec.num_episodes), threads=threads)
        log.info("demonstrations made", extra={"num_rows": len(rows), "resumed_at": done})
        plan = batches(len(rows), [len(row.token_ids) for row in rows], spec.num_steps, spec.seed)
        figures: Mapping[str, float] = {}
        while done < spec.num_steps:
            end = min(spec.num_steps, done + CHUNK_STEPS)
            started = time.perf_counter()

            def chunk(first: int = done, last: int = end) -> Mapping[str, float]:
                found: Mapping[str, float] = {}
                for step in range(first, last):
                    learner.set_factor(learning_factor(step, spec.num_steps))
                    found = sft_step(learner.model, learner.optimisers, [rows[i] for i in plan[step]])
                return found

            figures = {**await compute.run(chunk, threads=threads), "seconds": time.perf_counter() - started}
            done = end
            log.info("train step", extra={"stage": "sft", "step": done, **figures})
            if done // spec.checkpoint_every > (done - CHUNK_STEPS) // spec.checkpoint_every and done < spec.num_steps:
                await self._store.save_checkpoint(
                    self._job_id, done, await compute.run(learner.dump, threads=threads), {}
                )
            if await progress(done, figures):
                break
        return await self._publish(learner, done, figures, compute, threads)

    async def _restore(self, learner: Learner) -> int:
        saved = await self._store.load_checkpoint(self._job_id)
        if saved is None:
            return 0
        learner.restore(saved[0])
        step = saved[1]["step"]
        assert isinstance(step, int)
        return step

    async def _publish(
        self, learner: Learner, done: int, figures: Mapping[str, float], compute: ComputeThread, threads: int
    ) -> PolicyRef:
        built = await compute.run(
            lambda: build_policy(
                run_id=self._job_id,
                version=PolicyVersion(incarnation=0, step=done),
                model=learner.model,
                tokenizer=learner.tokenizer,
                made_how=MadeHow(stage="sft", metrics=figures),
                parent=self._spec.base,
            ),
            threads=threads,
        )
        ref = await store_policy(self._objects, built)
        await self._facts.policy_published(ref, self._spec.base, "sft")
        return ref
