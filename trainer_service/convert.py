"""Jobs on the wire. Bad values are INVALID_INPUT and name the field, the value and what is right."""

import re

from jm.trainer.v1 import trainer_pb2 as pb

from journeyman.convert import policy_ref_from_proto, policy_ref_to_proto, seconds_from_duration, seconds_to_duration
from journeyman.errors import ErrorCode, JourneymanError
from trainer_service.core.records import InitSpec, Job, JobKind, JobState, RlSpec, SftSpec

_STATE = {
    JobState.WAITING: pb.JOB_STATE_WAITING,
    JobState.RUNNING: pb.JOB_STATE_RUNNING,
    JobState.DONE: pb.JOB_STATE_DONE,
    JobState.STOPPED: pb.JOB_STATE_STOPPED,
    JobState.FAILED: pb.JOB_STATE_FAILED,
}
_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")


def spec_from_proto(spec: pb.JobSpec) -> tuple[str, JobKind]:
    """(job_id, kind)."""
    if not _ID.match(spec.job_id):
        raise _invalid(
            "job_id", spec.job_id, "1 to 100 letters, digits, '-', '_' or '.', beginning with a letter or digit"
        )
    match spec.WhichOneof("kind"):
        case "init":
            _at_least("init.domains", len(spec.init.domains), 1)
            init = InitSpec(seed=spec.init.seed, domains=tuple(spec.init.domains), from_path=spec.init.from_path)
            return spec.job_id, init
        case "sft":
            return spec.job_id, _sft(spec.sft)
        case "rl":
            return spec.job_id, _rl(spec.rl)
        case _:
            raise _invalid("kind", "nothing", "one of init, sft and rl")


def _sft(sft: pb.SftSpec) -> SftSpec:
    _at_least("sft.domains", len(sft.domains), 1)
    for name in ("num_steps", "num_episodes", "checkpoint_every"):
        _at_least(f"sft.{name}", getattr(sft, name), 1)
    return SftSpec(
        base=policy_ref_from_proto(sft.base),
        domains=tuple(sft.domains),
        num_steps=sft.num_steps,
        num_episodes=sft.num_episodes,
        seed=sft.seed,
        checkpoint_every=sft.checkpoint_every,
    )


def _rl(rl: pb.RlSpec) -> RlSpec:
    for name in ("num_steps", "groups_per_step", "min_groups", "checkpoint_every"):
        _at_least(f"rl.{name}", getattr(rl, name), 1)
    if not rl.learning_rate > 0:
        raise _invalid("rl.learning_rate", rl.learning_rate, "greater than 0")
    if not rl.run_id:
        raise _invalid("rl.run_id", rl.run_id, "the id of a train run")
    return RlSpec(
        base=policy_ref_from_proto(rl.base),
        run_id=rl.run_id,
        num_steps=rl.num_steps,
        groups_per_step=rl.groups_per_step,
        min_groups=min(rl.min_groups, rl.groups_per_step),
        max_wait_s=seconds_from_duration(rl.max_wait),
        learning_rate=rl.learning_rate,
        checkpoint_every=rl.checkpoint_every,
        seed=rl.seed,
    )


def job_to_proto(job: Job) -> pb.Job:
    """A job as it stands."""
    return pb.Job(
        spec=spec_to_proto(job.job_id, job.kind),
        state=_STATE[job.state],
        num_steps_done=job.num_steps_done,
        policy=policy_ref_to_proto(job.policy) if job.policy else None,
        metrics=[pb.Metric(name=name, value=value) for name, value in sorted(job.metrics.items())],
        error=job.error,
    )


def spec_to_proto(job_id: str, kind: JobKind) -> pb.JobSpec:
    """Inverse of spec_from_proto."""
    match kind:
        case InitSpec():
            init = pb.InitSpec(seed=kind.seed, domains=kind.domains, from_path=kind.from_path)
            return pb.JobSpec(job_id=job_id, init=init)
        case SftSpec():
            sft = pb.SftSpec(
                base=policy_ref_to_proto(kind.base),
                domains=kind.domains,
                num_steps=kind.num_steps,
                num_episodes=kind.num_episodes,
                seed=kind.seed,
                checkpoint_every=kind.checkpoint_every,
            )
            return pb.JobSpec(job_id=job_id, sft=sft)
        case RlSpec():
            rl = pb.RlSpec(
                base=policy_ref_to_proto(kind.base),
                run_id=kind.run_id,
                num_steps=kind.num_steps,
                groups_per_step=kind.groups_per_step,
                min_groups=kind.min_groups,
                max_wait=seconds_to_duration(kind.max_wait_s),
                learning_rate=kind.learning_rate,
                checkpoint_every=kind.checkpoint_every,
                seed=kind.seed,
            )
            return pb.JobSpec(job_id=job_id, rl=rl)


def _at_least(field: str, value: int, least: int) -> None:
    if value < least:
        raise _invalid(field, value, f"at least {least}")


def _invalid(field: str, value: object, right: str) -> JourneymanError:
    return JourneymanError(ErrorCode.INVALID_INPUT, f"{field}={value!r}: must be {right}")
