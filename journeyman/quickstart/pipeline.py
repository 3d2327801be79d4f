"""The pipeline of a quickstart through the services' APIs: init, cold start, evaluate, train, evaluate, gate.

Called by the session. Every id is fixed and every call may be repeated, so a resumed quickstart simply runs the pipeline again: what is done
answers at once, what was cut short goes on.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from jm.common.v1 import common_pb2 as common
from jm.registry.v1 import registry_pb2 as registry
from jm.sandbox.v1 import sandbox_pb2 as sandbox
from jm.scheduler.v1 import scheduler_pb2 as scheduler
from jm.trainer.v1 import trainer_pb2 as trainer

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.quickstart.cluster import Cluster, patiently
from journeyman.quickstart.journal import Stage
from journeyman.quickstart.recipe import Recipe
from journeyman.quickstart.sampler import Sampler
from journeyman.quickstart.view import expected_s

INIT_JOB, COLD_START_JOB, RL_RUN = "init", "sft", "rl"
BEFORE, AFTER = "before", "after"
FIRST_GATE, LAST_GATE = "gate-before", "gate-after"
RUNS = (BEFORE, RL_RUN, AFTER)
POLL_S = 0.2

_OVER = (trainer.JOB_STATE_DONE, trainer.JOB_STATE_STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the pipeline found."""

    before: registry.Evaluation
    after: registry.Evaluation
    decision: registry.RunGateResponse
    runs: tuple[scheduler.Run, ...]
    num_steps: int
    """RL steps done."""


class Pipeline:
    """One run of the pipeline."""

    def __init__(self, recipe: Recipe, cluster: Cluster, sampler: Sampler, deadline: float | None) -> None:
        self._recipe = recipe
        self._cluster = cluster
        self._sampler = sampler
        self._deadline = deadline
        """Moment of the monotonic clock at which training must end; None where only the recipe ends it."""

    async def run(self) -> Outcome:
        """All stages. PRECONDITION or INTERNAL names what failed."""
        await self._find_isolation()
        base = await self._init()
        cold = await self._cold_start(base)
        before = await self._evaluate(Stage.BEFORE, BEFORE, cold)
        await self._gate(FIRST_GATE, BEFORE, "")
        trained = await self._train(cold)
        after = await self._evaluate(Stage.AFTER, AFTER, trained.policy)
        with self._stage(Stage.GATE):
            decision = await self._gate(LAST_GATE, AFTER, BEFORE)
            runs = [await self._run(run_id) for run_id in RUNS]
        return Outcome(
            before=before, after=after, decision=decision, runs=tuple(runs), num_steps=trained.num_steps_done
        )

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        self._sampler.enter(stage)
        yield
        self._sampler.leave()

    async def _find_isolation(self) -> None:
        request = sandbox.GetCapabilitiesRequest()
        said = await patiently(lambda: self._cluster.sandbox.GetCapabilities(request))
        self._sampler.found_isolation(said.isolation)
        if said.not_enforced:
            self._sampler.note(f"the sandbox does not enforce: {'; '.join(said.not_enforced)}")

    async def _init(self) -> common.PolicyRef:
        spec = trainer.InitSpec(seed=self._recipe.seed, domains=self._recipe.domains, from_path=self._recipe.model)
        with self._stage(Stage.INIT):
            job = await self._job(trainer.JobSpec(job_id=INIT_JOB, init=spec))
        return job.policy

    async def _cold_start(self, base: common.PolicyRef) -> common.PolicyRef:
        recipe = self._recipe.cold_start
        spec = trainer.SftSpec(
            base=base,
            domains=self._recipe.domains,
            num_steps=recipe.num_steps,
            num_episodes=recipe.num_episodes,
            seed=self._recipe.seed,
            checkpoint_every=recipe.checkpoint_every,
        )
        with self._stage(Stage.COLD_START):
            self._sampler.look_at(job_id=COLD_START_JOB, num_asked=recipe.num_steps)
            job = await self._job(trainer.JobSpec(job_id=COLD_START_JOB, sft=spec))
        return job.policy

    async def _evaluate(self, stage: Stage, evaluation_id: str, policy: common.PolicyRef) -> registry.Evaluation:
        recipe = self._recipe.evaluation
        request = registry.StartEvaluationRequest(
            evaluation_id=evaluation_id,
            policy=policy,
            domains=self._recipe.domains,
            tasks_per_domain=recipe.tasks_per_domain,
            seed=self._recipe.seed,
            temperature=recipe.temperature,
        )
        with self._stage(stage):
            started = await patiently(lambda: self._cluster.registry.StartEvaluation(request))
            evaluation = started.evaluation
            self._sampler.look_at(run_id=evaluation_id, num_asked=evaluation.num_tasks)
            while not evaluation.is_complete:
                await asyncio.sleep(POLL_S)
                evaluation = await self._evaluation(evaluation_id)
        return evaluation

    async def _gate(self, decision_id: str, candidate: str, champion: str) -> registry.RunGateResponse:
        recipe = self._recipe.evaluation
        request = registry.RunGateRequest(
            decision_id=decision_id,
            candidate_evaluation_id=candidate,
            champion_evaluation_id=champion,
            margin=recipe.margin,
            alpha=recipe.alpha,
        )
        return await patiently(lambda: self._cluster.registry.RunGate(request))

    async def _train(self, base: common.PolicyRef) -> trainer.Job:
        with self._stage(Stage.RL):
            create = scheduler.CreateRunRequest(spec=self._run_spec())
            await patiently(lambda: self._cluster.scheduler.CreateRun(create))
            self._sampler.look_at(job_id=RL_RUN, run_id=RL_RUN, num_asked=self._recipe.rl.num_steps)
            job = await self._job(trainer.JobSpec(job_id=RL_RUN, rl=self._rl_spec(base)), self._train_until())
            await self._close_run()
        return job

    def _train_until(self) -> float | None:
        """When training must stop so that what comes after it still fits before the deadline."""
        if self._deadline is None:
            return None
        expected = expected_s(self._recipe)
        moment = self._deadline - expected[Stage.AFTER] - expected[Stage.GATE] - expected[Stage.REPORT]
        self._sampler.will_stop_at(moment)
        return moment

    async def _close_run(self) -> None:
        """Drops what the trainer will not take any more, and waits until every group has ended."""
        close = scheduler.CloseRunRequest(run_id=RL_RUN, cancel=True)
        run = (await patiently(lambda: self._cluster.scheduler.CloseRun(close))).run
        while run.state != scheduler.RUN_STATE_FINISHED:
            await asyncio.sleep(POLL_S)
            run = await self._run(RL_RUN)

    async def _run(self, run_id: str) -> scheduler.Run:
        request = scheduler.GetRunRequest(run_id=run_id)
        return (await patiently(lambda: self._cluster.scheduler.GetRun(request))).run

    async def _job(self, spec: trainer.JobSpec, until: float | None = None) -> trainer.Job:
        """Starts the job, or finds it, and waits for its end; a job still running at `until` is stopped."""
        start = trainer.StartJobRequest(spec=spec)
        job = (await patiently(lambda: self._cluster.trainer.StartJob(start))).job
        is_stopping = False
        while job.state not in _OVER:
            if job.state == trainer.JOB_STATE_FAILED:
                raise _failure(job)
            if until is not None and time.monotonic() > until and not is_stopping:
                await self._stop_job(spec.job_id)
                is_stopping = True
            await asyncio.sleep(POLL_S)
            job = await self._job_now(spec.job_id)
        return job

    async def _stop_job(self, job_id: str) -> None:
        request = trainer.StopJobRequest(job_id=job_id)
        await patiently(lambda: self._cluster.trainer.StopJob(request))
        self._sampler.note("the time is up: training ends after its current step")

    async def _job_now(self, job_id: str) -> trainer.Job:
        request = trainer.GetJobRequest(job_id=job_id)
        return (await patiently(lambda: self._cluster.trainer.GetJob(request))).job

    async def _evaluation(self, evaluation_id: str) -> registry.Evaluation:
        request = registry.GetEvaluationRequest(evaluation_id=evaluation_id)
        return (await patiently(lambda: self._cluster.registry.GetEvaluation(request))).evaluation

    def _run_spec(self) -> scheduler.RunSpec:
        rl = self._recipe.rl
        return scheduler.RunSpec(
            run_id=RL_RUN,
            kind=scheduler.RUN_KIND_TRAIN,
            domains=[scheduler.DomainShare(domain=domain) for domain in self._recipe.domains],
            split=common.SPLIT_TRAIN,
            policy=common.PolicySelector(latest_of_run=RL_RUN),
            group_size=rl.group_size,
            admission_slots=rl.admission_slots,
            min_graded=rl.min_graded,
            retry_budget=rl.retry_budget,
            lease=_duration(rl.lease_s),
            seed=self._recipe.seed,
            max_off_policy_steps=rl.max_off_policy_steps,
            temperature=rl.temperature,
        )

    def _rl_spec(self, base: common.PolicyRef) -> trainer.RlSpec:
        rl = self._recipe.rl
        return trainer.RlSpec(
            base=base,
            run_id=RL_RUN,
            num_steps=rl.num_steps,
            groups_per_step=rl.groups_per_step,
            min_groups=rl.min_groups,
            max_wait=_duration(rl.max_wait_s),
            learning_rate=rl.learning_rate,
            checkpoint_every=rl.checkpoint_every,
            seed=self._recipe.seed,
        )


def _failure(job: trainer.Job) -> JourneymanError:
    if job.spec.init.from_path:  # the only thing that such a job does is to read what the user named
        return JourneymanError(ErrorCode.INVALID_INPUT, job.error)
    return JourneymanError(ErrorCode.INTERNAL, f"job {job.spec.job_id} failed: {job.error}")


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration
