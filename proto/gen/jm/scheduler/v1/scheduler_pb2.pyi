import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from jm.common.v1 import common_pb2 as _common_pb2
from jm.events.v1 import events_pb2 as _events_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_KIND_UNSPECIFIED: _ClassVar[RunKind]
    RUN_KIND_TRAIN: _ClassVar[RunKind]
    RUN_KIND_EVAL: _ClassVar[RunKind]
    RUN_KIND_COLLECT: _ClassVar[RunKind]

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_ACTIVE: _ClassVar[RunState]
    RUN_STATE_DRAINING: _ClassVar[RunState]
    RUN_STATE_FINISHED: _ClassVar[RunState]
RUN_KIND_UNSPECIFIED: RunKind
RUN_KIND_TRAIN: RunKind
RUN_KIND_EVAL: RunKind
RUN_KIND_COLLECT: RunKind
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_ACTIVE: RunState
RUN_STATE_DRAINING: RunState
RUN_STATE_FINISHED: RunState

class DomainShare(_message.Message):
    __slots__ = ("domain", "levels", "num_groups")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    NUM_GROUPS_FIELD_NUMBER: _ClassVar[int]
    domain: str
    levels: _containers.RepeatedScalarFieldContainer[int]
    num_groups: int
    def __init__(self, domain: _Optional[str] = ..., levels: _Optional[_Iterable[int]] = ..., num_groups: _Optional[int] = ...) -> None: ...

class RunSpec(_message.Message):
    __slots__ = ("run_id", "kind", "domains", "split", "policy", "group_size", "admission_slots", "min_graded", "retry_budget", "lease", "seed", "max_off_policy_steps", "temperature")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_SLOTS_FIELD_NUMBER: _ClassVar[int]
    MIN_GRADED_FIELD_NUMBER: _ClassVar[int]
    RETRY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    MAX_OFF_POLICY_STEPS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    kind: RunKind
    domains: _containers.RepeatedCompositeFieldContainer[DomainShare]
    split: _common_pb2.Split
    policy: _common_pb2.PolicySelector
    group_size: int
    admission_slots: int
    min_graded: int
    retry_budget: int
    lease: _duration_pb2.Duration
    seed: int
    max_off_policy_steps: int
    temperature: float
    def __init__(self, run_id: _Optional[str] = ..., kind: _Optional[_Union[RunKind, str]] = ..., domains: _Optional[_Iterable[_Union[DomainShare, _Mapping]]] = ..., split: _Optional[_Union[_common_pb2.Split, str]] = ..., policy: _Optional[_Union[_common_pb2.PolicySelector, _Mapping]] = ..., group_size: _Optional[int] = ..., admission_slots: _Optional[int] = ..., min_graded: _Optional[int] = ..., retry_budget: _Optional[int] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., seed: _Optional[int] = ..., max_off_policy_steps: _Optional[int] = ..., temperature: _Optional[float] = ...) -> None: ...

class GroupCounts(_message.Message):
    __slots__ = ("admitted", "in_flight", "ready", "taken", "committed", "closed", "dropped")
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    admitted: int
    in_flight: int
    ready: int
    taken: int
    committed: int
    closed: int
    dropped: int
    def __init__(self, admitted: _Optional[int] = ..., in_flight: _Optional[int] = ..., ready: _Optional[int] = ..., taken: _Optional[int] = ..., committed: _Optional[int] = ..., closed: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...

class DropCount(_message.Message):
    __slots__ = ("reason", "count")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    reason: _events_pb2.DropReason
    count: int
    def __init__(self, reason: _Optional[_Union[_events_pb2.DropReason, str]] = ..., count: _Optional[int] = ...) -> None: ...

class DomainProgress(_message.Message):
    __slots__ = ("domain", "num_graded", "num_passed", "recent_pass_rate", "num_excluded", "standing")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    NUM_GRADED_FIELD_NUMBER: _ClassVar[int]
    NUM_PASSED_FIELD_NUMBER: _ClassVar[int]
    RECENT_PASS_RATE_FIELD_NUMBER: _ClassVar[int]
    NUM_EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    domain: str
    num_graded: int
    num_passed: int
    recent_pass_rate: float
    num_excluded: int
    standing: str
    def __init__(self, domain: _Optional[str] = ..., num_graded: _Optional[int] = ..., num_passed: _Optional[int] = ..., recent_pass_rate: _Optional[float] = ..., num_excluded: _Optional[int] = ..., standing: _Optional[str] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("spec", "state", "groups", "drops", "domains", "requeued_rollouts", "infra_failures_in_advantages", "lost_groups", "trajectories", "sampled_tokens")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DROPS_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    REQUEUED_ROLLOUTS_FIELD_NUMBER: _ClassVar[int]
    INFRA_FAILURES_IN_ADVANTAGES_FIELD_NUMBER: _ClassVar[int]
    LOST_GROUPS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORIES_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    spec: RunSpec
    state: RunState
    groups: GroupCounts
    drops: _containers.RepeatedCompositeFieldContainer[DropCount]
    domains: _containers.RepeatedCompositeFieldContainer[DomainProgress]
    requeued_rollouts: int
    infra_failures_in_advantages: int
    lost_groups: int
    trajectories: int
    sampled_tokens: int
    def __init__(self, spec: _Optional[_Union[RunSpec, _Mapping]] = ..., state: _Optional[_Union[RunState, str]] = ..., groups: _Optional[_Union[GroupCounts, _Mapping]] = ..., drops: _Optional[_Iterable[_Union[DropCount, _Mapping]]] = ..., domains: _Optional[_Iterable[_Union[DomainProgress, _Mapping]]] = ..., requeued_rollouts: _Optional[int] = ..., infra_failures_in_advantages: _Optional[int] = ..., lost_groups: _Optional[int] = ..., trajectories: _Optional[int] = ..., sampled_tokens: _Optional[int] = ...) -> None: ...

class CreateRunRequest(_message.Message):
    __slots__ = ("spec",)
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: RunSpec
    def __init__(self, spec: _Optional[_Union[RunSpec, _Mapping]] = ...) -> None: ...

class CreateRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class GetRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class CloseRunRequest(_message.Message):
    __slots__ = ("run_id", "cancel")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    cancel: bool
    def __init__(self, run_id: _Optional[str] = ..., cancel: _Optional[bool] = ...) -> None: ...

class CloseRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class SubmitTasksRequest(_message.Message):
    __slots__ = ("run_id", "tasks")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    tasks: _containers.RepeatedCompositeFieldContainer[_common_pb2.Task]
    def __init__(self, run_id: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[_common_pb2.Task, _Mapping]]] = ...) -> None: ...

class SubmitTasksResponse(_message.Message):
    __slots__ = ("num_accepted", "num_duplicates")
    NUM_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    NUM_DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    num_accepted: int
    num_duplicates: int
    def __init__(self, num_accepted: _Optional[int] = ..., num_duplicates: _Optional[int] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("run_id", "page_size", "page_token", "state")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    page_size: int
    page_token: str
    state: str
    def __init__(self, run_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class RolloutRow(_message.Message):
    __slots__ = ("index", "state", "attempt", "worker_id", "attribution", "passed", "reward")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    index: int
    state: str
    attempt: int
    worker_id: str
    attribution: _common_pb2.Attribution
    passed: bool
    reward: float
    def __init__(self, index: _Optional[int] = ..., state: _Optional[str] = ..., attempt: _Optional[int] = ..., worker_id: _Optional[str] = ..., attribution: _Optional[_Union[_common_pb2.Attribution, str]] = ..., passed: _Optional[bool] = ..., reward: _Optional[float] = ...) -> None: ...

class GroupRow(_message.Message):
    __slots__ = ("group_id", "state", "drop_reason", "task_id", "domain", "level", "rollouts", "admitted_at", "changed_at", "trained_into")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DROP_REASON_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ROLLOUTS_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    CHANGED_AT_FIELD_NUMBER: _ClassVar[int]
    TRAINED_INTO_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    state: str
    drop_reason: _events_pb2.DropReason
    task_id: str
    domain: str
    level: int
    rollouts: _containers.RepeatedCompositeFieldContainer[RolloutRow]
    admitted_at: _timestamp_pb2.Timestamp
    changed_at: _timestamp_pb2.Timestamp
    trained_into: _common_pb2.PolicyVersion
    def __init__(self, group_id: _Optional[str] = ..., state: _Optional[str] = ..., drop_reason: _Optional[_Union[_events_pb2.DropReason, str]] = ..., task_id: _Optional[str] = ..., domain: _Optional[str] = ..., level: _Optional[int] = ..., rollouts: _Optional[_Iterable[_Union[RolloutRow, _Mapping]]] = ..., admitted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., changed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., trained_into: _Optional[_Union[_common_pb2.PolicyVersion, _Mapping]] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[GroupRow]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[GroupRow, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SlotSeconds(_message.Message):
    __slots__ = ("cause", "seconds")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    cause: str
    seconds: float
    def __init__(self, cause: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("worker_id", "max_rollouts", "loaded", "is_idle", "slot_seconds")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_ROLLOUTS_FIELD_NUMBER: _ClassVar[int]
    LOADED_FIELD_NUMBER: _ClassVar[int]
    IS_IDLE_FIELD_NUMBER: _ClassVar[int]
    SLOT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    max_rollouts: int
    loaded: _common_pb2.PolicyRef
    is_idle: bool
    slot_seconds: _containers.RepeatedCompositeFieldContainer[SlotSeconds]
    def __init__(self, worker_id: _Optional[str] = ..., max_rollouts: _Optional[int] = ..., loaded: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., is_idle: _Optional[bool] = ..., slot_seconds: _Optional[_Iterable[_Union[SlotSeconds, _Mapping]]] = ...) -> None: ...

class LeasedRollout(_message.Message):
    __slots__ = ("index", "attempt", "seed")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    index: int
    attempt: int
    seed: int
    def __init__(self, index: _Optional[int] = ..., attempt: _Optional[int] = ..., seed: _Optional[int] = ...) -> None: ...

class GroupLease(_message.Message):
    __slots__ = ("group_id", "run_id", "task", "policy", "rollouts", "until", "temperature")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    ROLLOUTS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    run_id: str
    task: _common_pb2.Task
    policy: _common_pb2.PolicySelector
    rollouts: _containers.RepeatedCompositeFieldContainer[LeasedRollout]
    until: _timestamp_pb2.Timestamp
    temperature: float
    def __init__(self, group_id: _Optional[str] = ..., run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.Task, _Mapping]] = ..., policy: _Optional[_Union[_common_pb2.PolicySelector, _Mapping]] = ..., rollouts: _Optional[_Iterable[_Union[LeasedRollout, _Mapping]]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., temperature: _Optional[float] = ...) -> None: ...

class LeaseResponse(_message.Message):
    __slots__ = ("leases", "retry_after", "idle_cause")
    LEASES_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    IDLE_CAUSE_FIELD_NUMBER: _ClassVar[int]
    leases: _containers.RepeatedCompositeFieldContainer[GroupLease]
    retry_after: _duration_pb2.Duration
    idle_cause: str
    def __init__(self, leases: _Optional[_Iterable[_Union[GroupLease, _Mapping]]] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., idle_cause: _Optional[str] = ...) -> None: ...

class RolloutAttempt(_message.Message):
    __slots__ = ("group_id", "index", "attempt")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    index: int
    attempt: int
    def __init__(self, group_id: _Optional[str] = ..., index: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("worker_id", "attempts")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    attempts: _containers.RepeatedCompositeFieldContainer[RolloutAttempt]
    def __init__(self, worker_id: _Optional[str] = ..., attempts: _Optional[_Iterable[_Union[RolloutAttempt, _Mapping]]] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("until", "lost")
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    until: _timestamp_pb2.Timestamp
    lost: _containers.RepeatedCompositeFieldContainer[RolloutAttempt]
    def __init__(self, until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lost: _Optional[_Iterable[_Union[RolloutAttempt, _Mapping]]] = ...) -> None: ...

class ReturnRequest(_message.Message):
    __slots__ = ("worker_id", "attempts", "attribution", "detail")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    attempts: _containers.RepeatedCompositeFieldContainer[RolloutAttempt]
    attribution: _common_pb2.Attribution
    detail: str
    def __init__(self, worker_id: _Optional[str] = ..., attempts: _Optional[_Iterable[_Union[RolloutAttempt, _Mapping]]] = ..., attribution: _Optional[_Union[_common_pb2.Attribution, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class ReturnResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class IdleTotal(_message.Message):
    __slots__ = ("cause", "seconds")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    cause: str
    seconds: float
    def __init__(self, cause: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("runs", "slot_seconds", "num_workers", "num_leased")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SLOT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    NUM_LEASED_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[Run]
    slot_seconds: _containers.RepeatedCompositeFieldContainer[IdleTotal]
    num_workers: int
    num_leased: int
    def __init__(self, runs: _Optional[_Iterable[_Union[Run, _Mapping]]] = ..., slot_seconds: _Optional[_Iterable[_Union[IdleTotal, _Mapping]]] = ..., num_workers: _Optional[int] = ..., num_leased: _Optional[int] = ...) -> None: ...
