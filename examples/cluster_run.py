"""A client of a running cluster: makes a small model, cold-starts it and trains a few steps, all through gRPC.

Started by people after `docker compose up` (docs/deploy.md) and by the test that starts the compose file's commands as local processes.
It holds no state: every id follows from --name, and a repeated call finds what is already there, so it may be stopped and started again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import click
import grpc.aio
from jm.common.v1 import common_pb2
from jm.scheduler.v1 import scheduler_pb2
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceStub
from jm.trainer.v1 import trainer_pb2
from jm.trainer.v1.trainer_pb2_grpc import TrainerServiceStub

from journeyman.packs.load import list_packs
from journeyman.rpc.client import channel

if TYPE_CHECKING:  # the generated modules have these classes for type checkers only
    from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceAsyncStub
    from jm.trainer.v1.trainer_pb2_grpc import TrainerServiceAsyncStub

RUNNING = {scheduler_pb2.RUN_STATE_ACTIVE, scheduler_pb2.RUN_STATE_DRAINING}
ENDED = {trainer_pb2.JOB_STATE_DONE, trainer_pb2.JOB_STATE_STOPPED, trainer_pb2.JOB_STATE_FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything."""

    sft_steps: int
    sft_episodes: int
    steps: int
    groups: int
    """Groups a step."""
    group_size: int
    deadline_s: float
    """For each stage."""


class JobFailed(Exception):
    """The trainer ended a job with an error, which is the message."""


async def run_job(trainer: "TrainerServiceAsyncStub", spec: trainer_pb2.JobSpec, deadline_s: float) -> trainer_pb2.Job:
    """Starts a job (or finds it) and waits for its end."""
    await trainer.StartJob(trainer_pb2.StartJobRequest(spec=spec))
    async with asyncio.timeout(deadline_s):
        while True:
            answer = await trainer.GetJob(trainer_pb2.GetJobRequest(job_id=spec.job_id))
            if answer.job.state in ENDED:
                break
            await asyncio.sleep(0.2)
    if answer.job.state == trainer_pb2.JOB_STATE_FAILED:
        raise JobFailed(f"{spec.job_id}: {answer.job.error}")
    click.echo(f"{spec.job_id}: {answer.job.num_steps_done} steps, {figures(answer.job)}", err=True)
    return answer.job


def figures(job: trainer_pb2.Job) -> str:
    """The job's last figures in one line."""
    return " ".join(f"{metric.name}={metric.value:.3g}" for metric in job.metrics) or "no figures"


def train_run(name: str, domains: Sequence[str], group_size: int, slots: int) -> scheduler_pb2.RunSpec:
    """A train run that follows its own newest policy."""
    spec = scheduler_pb2.RunSpec(
        run_id=name,
        kind=scheduler_pb2.RUN_KIND_TRAIN,
        domains=[scheduler_pb2.DomainShare(domain=domain) for domain in domains],
        split=common_pb2.SPLIT_TRAIN,
        policy=common_pb2.PolicySelector(latest_of_run=name),
        group_size=group_size,
        admission_slots=slots,
        min_graded=2,
        retry_budget=3,
        max_off_policy_steps=1,
        temperature=1.0,
    )
    spec.lease.FromTimedelta(timedelta(seconds=60))
    return spec


def rl_job(name: str, base: common_pb2.PolicyRef, steps: int, groups: int) -> trainer_pb2.JobSpec:
    """Reinforcement learning on the run of the same name."""
    rl = trainer_pb2.RlSpec(
        base=base,
        run_id=name,
        num_steps=steps,
        groups_per_step=groups,
        min_groups=1,
        learning_rate=1e-3,
        checkpoint_every=1,
    )
    rl.max_wait.FromTimedelta(timedelta(seconds=10))
    return trainer_pb2.JobSpec(job_id=f"{name}-rl", rl=rl)


async def train(
    scheduler: grpc.aio.Channel, trainer: grpc.aio.Channel, name: str, domains: Sequence[str], sizes: Sizes
) -> scheduler_pb2.Run:
    """Model, cold start, reinforcement learning; returns the run as it stands at the end."""
    jobs, runs = TrainerServiceStub(trainer), SchedulerServiceStub(scheduler)
    init = trainer_pb2.JobSpec(job_id=f"{name}-init", init=trainer_pb2.InitSpec(domains=domains))
    made = await run_job(jobs, init, sizes.deadline_s)
    sft = trainer_pb2.SftSpec(
        base=made.policy,
        domains=domains,
        num_steps=sizes.sft_steps,
        num_episodes=sizes.sft_episodes,
        checkpoint_every=max(1, sizes.sft_steps),
    )
    started = await run_job(jobs, trainer_pb2.JobSpec(job_id=f"{name}-sft", sft=sft), sizes.deadline_s)
    spec = train_run(name, domains, sizes.group_size, 2 * sizes.groups)
    await runs.CreateRun(scheduler_pb2.CreateRunRequest(spec=spec))
    await run_job(jobs, rl_job(name, started.policy, sizes.steps, sizes.groups), sizes.deadline_s)
    return await settle(runs, name, sizes.deadline_s)


async def settle(runs: "SchedulerServiceAsyncStub", name: str, deadline_s: float) -> scheduler_pb2.Run:
    """Closes the run, dropping what is in flight, and waits until every group has ended."""
    await runs.CloseRun(scheduler_pb2.CloseRunRequest(run_id=name, cancel=True))
    async with asyncio.timeout(deadline_s):
        while True:
            answer = await runs.GetRun(scheduler_pb2.GetRunRequest(run_id=name))
            if answer.run.state not in RUNNING:
                return answer.run
            await asyncio.sleep(0.2)


async def connect_and_train(
    scheduler: str, trainer: str, name: str, domains: Sequence[str], sizes: Sizes
) -> scheduler_pb2.Run:
    """As train, on addresses."""
    async with channel(scheduler) as to_scheduler, channel(trainer) as to_trainer:
        return await train(to_scheduler, to_trainer, name, domains, sizes)


@click.command()
@click.option("--scheduler", default="127.0.0.1:50051", show_default=True, help="host:port")
@click.option("--trainer", default="127.0.0.1:50052", show_default=True, help="host:port")
@click.option("--name", default="first", show_default=True, help="Names the run and its jobs.")
@click.option("--steps", default=3, show_default=True, help="Optimiser steps of reinforcement learning.")
@click.option("--sft-steps", default=60, show_default=True, help="Optimiser steps of the cold start.")
@click.option("--groups", default=6, show_default=True, help="Groups a step.")
@click.option("--group-size", default=8, show_default=True, help="Rollouts a group.")
def main(scheduler: str, trainer: str, name: str, steps: int, sft_steps: int, groups: int, group_size: int) -> None:
    """Trains a few steps on a running cluster and prints what became of the groups."""
    sizes = Sizes(
        sft_steps=sft_steps,
        sft_episodes=20 * sft_steps,
        steps=steps,
        groups=groups,
        group_size=group_size,
        deadline_s=600.0,
    )
    run = asyncio.run(connect_and_train(scheduler, trainer, name, [pack.spec.name for pack in list_packs()], sizes))
    click.echo(
        f"admitted {run.groups.admitted}, committed {run.groups.committed}, dropped {run.groups.dropped}, "
        f"lost {run.lost_groups}; {run.trajectories} trajectories, {run.sampled_tokens} tokens"
    )


if __name__ == "__main__":
    main()
