"""Asks the services twice a second how they are doing, writes that into the journal and hands it to the screen.

Runs beside the pipeline, which tells it the stage. A service that does not answer (it is being restarted) leaves the figures as they were.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from jm.rollout.v1 import rollout_pb2 as rollout
from jm.scheduler.v1 import scheduler_pb2 as scheduler
from jm.trainer.v1 import trainer_pb2 as trainer

from journeyman.errors import JourneymanError
from journeyman.quickstart.cluster import Cluster
from journeyman.quickstart.journal import Journal, JsonValue, Stage
from journeyman.quickstart.recipe import Recipe
from journeyman.quickstart.view import View, expected_s, time_left_s

T = TypeVar("T")

SAMPLE_EVERY_S = 0.5
ANSWER_WITHIN_S = 2.0
KEPT_NOTES = 4
_AFTER_TRAINING = (Stage.AFTER, Stage.GATE, Stage.REPORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """What the pipeline works on now."""

    stage: Stage
    job_id: str = ""
    """Trainer job; empty where there is none."""
    run_id: str = ""
    """Scheduler run; empty where there is none."""
    num_asked: int = 0
    """Steps of the job, or tasks of the run; 0 where it has none."""
    since: float = field(default_factory=time.monotonic)


class Sampler:
    """Holds the present view."""

    def __init__(self, recipe: Recipe, journal: Journal, cpu_s: Callable[[], float]) -> None:
        self._journal = journal
        self._cpu_s = cpu_s
        self._expected = expected_s(recipe)
        self._spent: dict[Stage, float] = {}
        self._began_at = time.monotonic()
        self._focus = Focus(stage=Stage.START)
        self._stop_at: float | None = None
        self._tokens = 0
        self.view = View(stage=Stage.START, elapsed_s=0.0)

    def enter(self, stage: Stage) -> None:
        """A stage begins."""
        self._focus = Focus(stage=stage)
        self.view = View(
            stage=stage,
            elapsed_s=self._elapsed_s(),
            slot_seconds=self.view.slot_seconds,
            isolation=self.view.isolation,
            notes=self.view.notes,
        )
        self._journal.append("stage_started", stage=stage.value, cpu_s=self._cpu_s())

    def leave(self) -> None:
        """The stage is over."""
        stage = self._focus.stage
        self._spent[stage] = time.monotonic() - self._focus.since
        self._journal.append("stage_ended", stage=stage.value, cpu_s=self._cpu_s())

    def has_finished(self, stage: Stage) -> bool:
        """Whether the stage was completed in this sitting."""
        return stage in self._spent

    def look_at(self, *, job_id: str = "", run_id: str = "", num_asked: int = 0) -> None:
        """Names the job and the run that the stage waits for."""
        self._focus = replace(self._focus, job_id=job_id, run_id=run_id, num_asked=num_asked)

    def note(self, text: str, **fields: JsonValue) -> None:
        """Says something to the user and to the journal."""
        self._journal.append("note", text=text, **fields)
        self.view = replace(self.view, notes=(*self.view.notes, text)[-KEPT_NOTES:])

    def found_isolation(self, isolation: str) -> None:
        """The sandbox said which isolation is in force."""
        self._journal.append("isolation", isolation=isolation)
        self.view = replace(self.view, isolation=isolation)

    def will_stop_at(self, deadline: float | None) -> None:
        """Training is cut at this moment of the monotonic clock; None where it is not."""
        self._stop_at = deadline

    async def run(self, cluster: Cluster, show: Callable[[View], None]) -> None:
        """Samples until cancelled."""
        while True:
            await self._sample(cluster)
            show(self.view)
            await asyncio.sleep(SAMPLE_EVERY_S)

    async def _sample(self, cluster: Cluster) -> None:
        focus = self._focus
        scheduler_said, rollout_said, job_said = await asyncio.gather(
            _answer(cluster.scheduler.GetStatus(scheduler.GetStatusRequest(), timeout=ANSWER_WITHIN_S)),
            _answer(cluster.rollout.GetStatus(rollout.GetStatusRequest(), timeout=ANSWER_WITHIN_S)),
            _answer(_job(cluster, focus.job_id)),
        )
        if focus.stage is not self._focus.stage:
            return  # the stage changed meanwhile: what was answered speaks of the one before
        view = replace(self.view, elapsed_s=self._elapsed_s())
        if scheduler_said is not None:
            view = _with_scheduler(view, scheduler_said, focus)
        if job_said is not None:
            view = _with_job(view, job_said.job, focus)
        entropy = None
        if rollout_said is not None:
            view = replace(view, tokens_per_s=rollout_said.tokens_per_s)
            entropy = rollout_said.entropy
            self._tokens = rollout_said.sampled_tokens
        self.view = replace(view, left_s=self._left_s(view))
        self._record(entropy)

    def _record(self, entropy: float | None) -> None:
        view = self.view
        self._journal.append(
            "sample",
            stage=view.stage.value,
            done=view.num_done,
            domains=dict(view.domains),
            metrics=dict(view.metrics),
            tokens=self._tokens,
            tokens_per_s=round(view.tokens_per_s, 1),
            entropy=entropy,
            in_flight=view.num_in_flight,
            ready=view.num_ready,
            slot_seconds=dict(view.slot_seconds),
            cpu_s=round(self._cpu_s(), 2),
        )

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began_at

    def _left_s(self, view: View) -> float:
        now = time.monotonic()
        done = view.num_done / view.num_asked if view.num_asked else 0.0
        left_s = time_left_s(self._expected, self._spent, view.stage, now - self._focus.since, done)
        if self._stop_at is None or view.stage in _AFTER_TRAINING:
            return left_s
        later_s = self._expected[Stage.AFTER] + self._expected[Stage.GATE] + self._expected[Stage.REPORT]
        return min(left_s, max(self._stop_at - now, 0.0) + later_s)


async def _job(cluster: Cluster, job_id: str) -> trainer.GetJobResponse | None:
    if not job_id:
        return None
    return await cluster.trainer.GetJob(trainer.GetJobRequest(job_id=job_id), timeout=ANSWER_WITHIN_S)


async def _answer(call: Awaitable[T]) -> T | None:
    try:
        return await call
    except JourneymanError:
        return None


def _with_scheduler(view: View, said: scheduler.GetStatusResponse, focus: Focus) -> View:
    view = replace(view, slot_seconds={total.cause: round(total.seconds, 2) for total in said.slot_seconds})
    run = next((run for run in said.runs if run.spec.run_id == focus.run_id), None)
    if run is None:
        return view
    view = replace(view, num_in_flight=run.groups.in_flight, num_ready=run.groups.ready, domains=_success(run))
    if run.spec.kind == scheduler.RUN_KIND_TRAIN:
        return view
    return replace(view, num_done=run.groups.closed + run.groups.dropped, num_asked=focus.num_asked, unit="tasks")


def _success(run: scheduler.Run) -> dict[str, float]:
    if run.spec.kind == scheduler.RUN_KIND_TRAIN:
        return {progress.domain: round(progress.recent_pass_rate, 4) for progress in run.domains if progress.num_graded}
    return {
        progress.domain: round(progress.num_passed / progress.num_graded, 4)
        for progress in run.domains
        if progress.num_graded
    }


def _with_job(view: View, job: trainer.Job, focus: Focus) -> View:
    metrics = {metric.name: metric.value for metric in job.metrics}
    view = replace(view, metrics=metrics)
    if (focus.num_asked and not focus.run_id) or view.stage is Stage.RL:
        return replace(view, num_done=job.num_steps_done, num_asked=focus.num_asked, unit="steps")
    return view
