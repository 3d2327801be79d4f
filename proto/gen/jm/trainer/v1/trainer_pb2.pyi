import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from jm.common.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_WAITING: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_DONE: _ClassVar[JobState]
    JOB_STATE_STOPPED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_WAITING: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_DONE: JobState
JOB_STATE_STOPPED: JobState
JOB_STATE_FAILED: JobState

class InitSpec(_message.Message):
    __slots__ = ("seed", "domains", "from_path")
    SEED_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    FROM_PATH_FIELD_NUMBER: _ClassVar[int]
    seed: int
    domains: _containers.RepeatedScalarFieldContainer[str]
    from_path: str
    def __init__(self, seed: _Optional[int] = ..., domains: _Optional[_Iterable[str]] = ..., from_path: _Optional[str] = ...) -> None: ...

class SftSpec(_message.Message):
    __slots__ = ("base", "domains", "num_steps", "num_episodes", "seed", "checkpoint_every")
    BASE_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    NUM_STEPS_FIELD_NUMBER: _ClassVar[int]
    NUM_EPISODES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_EVERY_FIELD_NUMBER: _ClassVar[int]
    base: _common_pb2.PolicyRef
    domains: _containers.RepeatedScalarFieldContainer[str]
    num_steps: int
    num_episodes: int
    seed: int
    checkpoint_every: int
    def __init__(self, base: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., domains: _Optional[_Iterable[str]] = ..., num_steps: _Optional[int] = ..., num_episodes: _Optional[int] = ..., seed: _Optional[int] = ..., checkpoint_every: _Optional[int] = ...) -> None: ...

class RlSpec(_message.Message):
    __slots__ = ("base", "run_id", "num_steps", "groups_per_step", "min_groups", "max_wait", "learning_rate", "checkpoint_every", "seed")
    BASE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_STEPS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    MIN_GROUPS_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_EVERY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    base: _common_pb2.PolicyRef
    run_id: str
    num_steps: int
    groups_per_step: int
    min_groups: int
    max_wait: _duration_pb2.Duration
    learning_rate: float
    checkpoint_every: int
    seed: int
    def __init__(self, base: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., run_id: _Optional[str] = ..., num_steps: _Optional[int] = ..., groups_per_step: _Optional[int] = ..., min_groups: _Optional[int] = ..., max_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., learning_rate: _Optional[float] = ..., checkpoint_every: _Optional[int] = ..., seed: _Optional[int] = ...) -> None: ...

class JobSpec(_message.Message):
    __slots__ = ("job_id", "init", "sft", "rl")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    INIT_FIELD_NUMBER: _ClassVar[int]
    SFT_FIELD_NUMBER: _ClassVar[int]
    RL_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    init: InitSpec
    sft: SftSpec
    rl: RlSpec
    def __init__(self, job_id: _Optional[str] = ..., init: _Optional[_Union[InitSpec, _Mapping]] = ..., sft: _Optional[_Union[SftSpec, _Mapping]] = ..., rl: _Optional[_Union[RlSpec, _Mapping]] = ...) -> None: ...

class Metric(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("spec", "state", "num_steps_done", "policy", "metrics", "error")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NUM_STEPS_DONE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    spec: JobSpec
    state: JobState
    num_steps_done: int
    policy: _common_pb2.PolicyRef
    metrics: _containers.RepeatedCompositeFieldContainer[Metric]
    error: str
    def __init__(self, spec: _Optional[_Union[JobSpec, _Mapping]] = ..., state: _Optional[_Union[JobState, str]] = ..., num_steps_done: _Optional[int] = ..., policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., metrics: _Optional[_Iterable[_Union[Metric, _Mapping]]] = ..., error: _Optional[str] = ...) -> None: ...

class StartJobRequest(_message.Message):
    __slots__ = ("spec",)
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: JobSpec
    def __init__(self, spec: _Optional[_Union[JobSpec, _Mapping]] = ...) -> None: ...

class StartJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class StopJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class StopJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...
