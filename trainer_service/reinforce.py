"""The rl job: takes ready groups, trains, publishes weights each step, commits with each checkpoint.

Order inside a step: take (the fact frees the admission slot) -> compute -> store the policy -> policy.published; at a checkpoint: store it ->
group.committed. A group too old to take is noted in the job's life -> group.dropped, at once: its slot must not wait for a checkpoint. A
restarted trainer begins at the checkpoint with a new incarnation, says the checkpoint's facts again, and reads group.ready from the
checkpoint's offset: groups of steps that were lost are trained again, groups in the checkpoint and dropped ones are not.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from journeyman.artefacts import BuiltPolicy, MadeHow, Manifest, build_policy, read_policy, store_policy
from journeyman.objects.port import Objects
from journeyman.records import PolicyRef, Trajectory
from trainer_service.cold_start import Halt, Progress
from trainer_service.core.advantages import by_domain
from trainer_service.core.lineage import Lineage, oldest_step, texts
from trainer_service.core.optim import rl_optimisers
from trainer_service.core.packing import TrainRow
from trainer_service.core.records import RlSpec
from trainer_service.core.schedule import factor
from trainer_service.core.step import StepRecipe, train_step
from trainer_service.learner import ComputeThread, Learner
from trainer_service.ports import Dropped, Facts, Groups, JobStore, ReadyGroup, ReadyRollout, Trajectories

log = logging.getLogger(__name__)
WARMUP_STEPS = 3
DECAY_SHARE = 0.3
FLOOR = 0.1
POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedGroup:
    """A group with its rollouts."""

    ready: ReadyGroup
    members: Sequence[tuple[ReadyRollout, Trajectory]]


class Reinforcement:
    """One rl job."""

    def __init__(
        self,
        job_id: str,
        spec: RlSpec,
        *,
        objects: Objects,
        store: JobStore,
        facts: Facts,
        groups: Groups,
        trajectories: Trajectories,
    ) -> None:
        self._job_id, self._spec = job_id, spec
        self._objects, self._store, self._facts = objects, store, facts
        self._groups, self._trajectories = groups, trajectories
        self._lineage = Lineage()
        self._waiting: dict[str, LoadedGroup] = {}
        self._parent: tuple[PolicyRef, Manifest] | None = None

    async def run(self, compute: ComputeThread, threads: int, progress: Progress) -> PolicyRef:
        """Trains to the end or to a stop; the last policy is durable and published."""
        base = await read_policy(self._objects, self._spec.base)
        rate = self._spec.learning_rate
        learner = Learner(base.model.train(), base.tokenizer, rl_optimisers(base.model, rate), (rate,))
        await self._begin(learner, compute, threads)
        figures: Mapping[str, float] = {}
        halt = await progress(self._lineage.step, {})
        while self._lineage.step < self._spec.num_steps and halt is None:
            taken = await self._collect(progress)
            if isinstance(taken, Halt):
                halt = taken
                break
            figures = await self._step(learner, taken, compute, threads)
            is_last = self._lineage.step >= self._spec.num_steps
            halt = await progress(self._lineage.step, figures)
            if is_last or halt or self._lineage.step % self._spec.checkpoint_every == 0:
                await self._checkpoint(learner, compute, threads)
        if self._lineage.uncommitted:
            await self._checkpoint(learner, compute, threads)
        if halt is not Halt.PAUSE:
            await self._let_go()
        await self._groups.close()
        assert self._parent is not None
        return self._parent[0]

    async def _begin(self, learner: Learner, compute: ComputeThread, threads: int) -> None:
        """At the checkpoint, or at the base: publishes the weights to start from under the run's name."""
        saved = await self._store.load_checkpoint(self._job_id)
        life = await self._store.load_life(self._job_id)
        self._lineage = Lineage.reborn(life, saved[1] if saved else None)
        await self._store.save_life(self._job_id, self._lineage.life)
        if saved is not None:
            await compute.run(partial(learner.restore, saved[0]), threads=threads)
            log.info("resumed", extra={"step": self._lineage.step, "incarnation": self._lineage.incarnation})
        await self._publish(learner, {}, compute, threads)
        if saved is None:
            await self._checkpoint(learner, compute, threads)
        else:
            committed = texts(saved[1], "committed_here")
            await self._facts.groups_committed(self._spec.run_id, committed, self._lineage.version)
        await self._tell_stale(sorted(self._lineage.dropped))
        await self._groups.start(self._lineage.offset)

    async def _collect(self, progress: Progress) -> list[LoadedGroup] | Halt:
        """Groups for the next step, in the order in which they became ready, or why to leave."""
        spec = self._spec
        waited_from = time.monotonic()
        while True:
            await self._drop_stale()
            waits = time.monotonic() - waited_from
            enough = len(self._waiting) >= spec.groups_per_step
            if enough or (waits >= spec.max_wait_s and len(self._waiting) >= spec.min_groups):
                chosen = list(self._waiting.values())[: spec.groups_per_step]
                for group in chosen:
                    del self._waiting[group.ready.group_id]
                return chosen
            for ready in await self._groups.next(min(POLL_S, max(0.01, spec.max_wait_s - waits))):
                await self._offer(ready)
            if (halt := await progress(self._lineage.step, {})) is not None:
                return halt

    async def _offer(self, ready: ReadyGroup) -> None:
        known = ready.group_id in self._waiting or self._lineage.is_settled(ready.group_id)
        if ready.run_id == self._spec.run_id and not known:
            members = await self._trajectories.of_group(ready)
            self._waiting[ready.group_id] = LoadedGroup(ready=ready, members=members)

    async def _drop_stale(self) -> None:
        """Every trained token's weights are at most max_off_policy_steps behind, or the group goes."""
        stale: list[str] = []
        for group_id, group in list(self._waiting.items()):
            oldest = oldest_step([trajectory for _, trajectory in group.members])
            age = self._lineage.step - oldest if oldest is not None else 0
            if age > group.ready.max_off_policy_steps:
                del self._waiting[group_id]
                stale.append(group_id)
                log.info("group stale", extra={"group_id": group_id, "age_steps": age})
        if stale:
            self._lineage.dropped.update(stale)
            await self._store.save_life(self._job_id, self._lineage.life)
            await self._tell_stale(stale)

    async def _tell_stale(self, group_ids: Sequence[str]) -> None:
        detail = "older than the run allows"
        await self._facts.groups_dropped(self._spec.run_id, group_ids, Dropped.STALE, detail)

    async def _step(
        self, learner: Learner, taken: Sequence[LoadedGroup], compute: ComputeThread, threads: int
    ) -> Mapping[str, float]:
        lineage, spec = self._lineage, self._spec
        started = time.perf_counter()
        group_ids = [group.ready.group_id for group in taken]
        lineage.step += 1
        await self._facts.groups_taken(spec.run_id, group_ids, lineage.version)
        advantages = by_domain([(g.ready.domain, [member.reward for member, _ in g.members]) for g in taken])
        rows = [
            TrainRow(token_ids=t.token_ids, is_sampled=t.is_sampled, logprobs=t.logprobs, advantage=advantage)
            for group, values in zip(taken, advantages, strict=True)
            for (_, t), advantage in zip(group.members, values, strict=True)
        ]
        learner.set_factor(
            factor(lineage.step - 1, spec.num_steps, warmup_steps=WARMUP_STEPS, decay_share=DECAY_SHARE, floor=FLOOR)
        )
        figures = await compute.run(
            lambda: train_step(learner.model, learner.optimisers, rows, learner.tokenizer.forbidden_ids, StepRecipe()),
            threads=threads,
        )
        lineage.trained.update(group_ids)
        lineage.uncommitted += group_ids
        lineage.offset = self._next_offset(taken)
        figures |= _batch_figures(taken, lineage.step - 1, len(self._waiting))
        figures["seconds"] = time.perf_counter() - started
        await self._publish(learner, figures, compute, threads)
        log.info("train step", extra={"stage": "rl", "step": lineage.step, **figures})
        return figures

    def _next_offset(self, taken: Sequence[LoadedGroup]) -> int:
        """The first group that still waits, or what comes after the last one taken."""
        waiting = [group.ready.offset for group in self._waiting.values()]
        last = max(self._lineage.offset, *(group.ready.offset + 1 for group in taken))
        return min([*waiting, last])

    async def _let_go(self) -> None:
        """Says of every group that is ready, or was taken by a former life in a step that was lost, that it will not be trained."""
        left = set(self._waiting)
        while ready := await self._groups.next(POLL_S):
            left.update(g.group_id for g in ready if g.run_id == self._spec.run_id)
        left = {group_id for group_id in left if not self._lineage.is_settled(group_id)}
        await self._facts.groups_dropped(
            self._spec.run_id, sorted(left), Dropped.CANCELLED, "the job ended before training it"
        )

    async def _publish(
        self, learner: Learner, figures: Mapping[str, float], compute: ComputeThread, threads: int
    ) -> None:
        """Stores the weights under the lineage's version, then says so."""
        parent = self._parent

        def build() -> BuiltPolicy:
            return build_policy(
                run_id=self._spec.run_id,
                version=self._lineage.version,
                model=learner.model,
                tokenizer=learner.tokenizer,
                made_how=MadeHow(stage="rl", metrics=figures),
                parent=parent[0] if parent else self._spec.base,
                parent_manifest=parent[1] if parent else None,
            )

        built = await compute.run(build, threads=threads)
        ref = await store_policy(self._objects, built)
        await self._facts.policy_published(ref, parent[0] if parent else self._spec.base, "rl")
        self._parent = (ref, built.manifest)

    async def _checkpoint(self, learner: Learner, compute: ComputeThread, threads: int) -> None:
        lineage = self._lineage
        tensors = await compute.run(learner.dump, threads=threads)
        await self._store.save_checkpoint(self._job_id, lineage.step, tensors, lineage.to_state())
        committed = list(lineage.uncommitted)
        lineage.uncommitted.clear()
        await self._facts.groups_committed(self._spec.run_id, committed, lineage.version)


def _batch_figures(taken: Sequence[LoadedGroup], trained_from_step: int, num_waiting: int) -> dict[str, float]:
    members = [pair for group in taken for pair in group.members]
    ages = [trained_from_step - (oldest_step([t for _, t in group.members]) or 0) for group in taken]
    return {
        "reward": sum(member.reward for member, _ in members) / len(members),
        "pass_rate": sum(member.passed for member, _ in members) / len(members),
        "groups": float(len(taken)),
        "groups_waiting": float(num_waiting),
        "age_steps_max": float(max(ages)),
        "tokens": float(sum(len(t.token_ids) for _, t in members)),
    }
