import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from jm.common.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VerdictStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_STATUS_UNSPECIFIED: _ClassVar[VerdictStatus]
    VERDICT_STATUS_GRADED: _ClassVar[VerdictStatus]
    VERDICT_STATUS_BAD_TASK: _ClassVar[VerdictStatus]
    VERDICT_STATUS_VERIFIER_ERROR: _ClassVar[VerdictStatus]
    VERDICT_STATUS_TIMED_OUT: _ClassVar[VerdictStatus]

class DropReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DROP_REASON_UNSPECIFIED: _ClassVar[DropReason]
    DROP_REASON_INFRA: _ClassVar[DropReason]
    DROP_REASON_STALE: _ClassVar[DropReason]
    DROP_REASON_ZERO_VARIANCE: _ClassVar[DropReason]
    DROP_REASON_CANCELLED: _ClassVar[DropReason]
    DROP_REASON_POISONED: _ClassVar[DropReason]
VERDICT_STATUS_UNSPECIFIED: VerdictStatus
VERDICT_STATUS_GRADED: VerdictStatus
VERDICT_STATUS_BAD_TASK: VerdictStatus
VERDICT_STATUS_VERIFIER_ERROR: VerdictStatus
VERDICT_STATUS_TIMED_OUT: VerdictStatus
DROP_REASON_UNSPECIFIED: DropReason
DROP_REASON_INFRA: DropReason
DROP_REASON_STALE: DropReason
DROP_REASON_ZERO_VARIANCE: DropReason
DROP_REASON_CANCELLED: DropReason
DROP_REASON_POISONED: DropReason

class Envelope(_message.Message):
    __slots__ = ("event_id", "occurred_at", "run_id", "causation_id", "traceparent", "task_submitted", "trajectory_recorded", "trajectory_verified", "group_ready", "group_taken", "group_committed", "group_dropped", "group_closed", "policy_published", "policy_promoted", "policy_rejected", "alert_raised", "dead_letter")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CAUSATION_ID_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TASK_SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_RECORDED_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_VERIFIED_FIELD_NUMBER: _ClassVar[int]
    GROUP_READY_FIELD_NUMBER: _ClassVar[int]
    GROUP_TAKEN_FIELD_NUMBER: _ClassVar[int]
    GROUP_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    GROUP_DROPPED_FIELD_NUMBER: _ClassVar[int]
    GROUP_CLOSED_FIELD_NUMBER: _ClassVar[int]
    POLICY_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    POLICY_PROMOTED_FIELD_NUMBER: _ClassVar[int]
    POLICY_REJECTED_FIELD_NUMBER: _ClassVar[int]
    ALERT_RAISED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    occurred_at: _timestamp_pb2.Timestamp
    run_id: str
    causation_id: str
    traceparent: str
    task_submitted: TaskSubmitted
    trajectory_recorded: TrajectoryRecorded
    trajectory_verified: TrajectoryVerified
    group_ready: GroupReady
    group_taken: GroupTaken
    group_committed: GroupCommitted
    group_dropped: GroupDropped
    group_closed: GroupClosed
    policy_published: PolicyPublished
    policy_promoted: PolicyPromoted
    policy_rejected: PolicyRejected
    alert_raised: AlertRaised
    dead_letter: DeadLetter
    def __init__(self, event_id: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., run_id: _Optional[str] = ..., causation_id: _Optional[str] = ..., traceparent: _Optional[str] = ..., task_submitted: _Optional[_Union[TaskSubmitted, _Mapping]] = ..., trajectory_recorded: _Optional[_Union[TrajectoryRecorded, _Mapping]] = ..., trajectory_verified: _Optional[_Union[TrajectoryVerified, _Mapping]] = ..., group_ready: _Optional[_Union[GroupReady, _Mapping]] = ..., group_taken: _Optional[_Union[GroupTaken, _Mapping]] = ..., group_committed: _Optional[_Union[GroupCommitted, _Mapping]] = ..., group_dropped: _Optional[_Union[GroupDropped, _Mapping]] = ..., group_closed: _Optional[_Union[GroupClosed, _Mapping]] = ..., policy_published: _Optional[_Union[PolicyPublished, _Mapping]] = ..., policy_promoted: _Optional[_Union[PolicyPromoted, _Mapping]] = ..., policy_rejected: _Optional[_Union[PolicyRejected, _Mapping]] = ..., alert_raised: _Optional[_Union[AlertRaised, _Mapping]] = ..., dead_letter: _Optional[_Union[DeadLetter, _Mapping]] = ...) -> None: ...

class TaskSubmitted(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: _common_pb2.Task
    def __init__(self, task: _Optional[_Union[_common_pb2.Task, _Mapping]] = ...) -> None: ...

class RecordedMember(_message.Message):
    __slots__ = ("index", "attempt", "completed", "attribution", "ending", "num_sampled_tokens", "num_turns", "oldest_version")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    NUM_SAMPLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NUM_TURNS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_VERSION_FIELD_NUMBER: _ClassVar[int]
    index: int
    attempt: int
    completed: bool
    attribution: _common_pb2.Attribution
    ending: str
    num_sampled_tokens: int
    num_turns: int
    oldest_version: _common_pb2.PolicyVersion
    def __init__(self, index: _Optional[int] = ..., attempt: _Optional[int] = ..., completed: _Optional[bool] = ..., attribution: _Optional[_Union[_common_pb2.Attribution, str]] = ..., ending: _Optional[str] = ..., num_sampled_tokens: _Optional[int] = ..., num_turns: _Optional[int] = ..., oldest_version: _Optional[_Union[_common_pb2.PolicyVersion, _Mapping]] = ...) -> None: ...

class TrajectoryRecorded(_message.Message):
    __slots__ = ("group_id", "object", "members", "worker_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    object: _common_pb2.ObjectRef
    members: _containers.RepeatedCompositeFieldContainer[RecordedMember]
    worker_id: str
    def __init__(self, group_id: _Optional[str] = ..., object: _Optional[_Union[_common_pb2.ObjectRef, _Mapping]] = ..., members: _Optional[_Iterable[_Union[RecordedMember, _Mapping]]] = ..., worker_id: _Optional[str] = ...) -> None: ...

class TierResult(_message.Message):
    __slots__ = ("tier", "score", "decided", "evidence", "cost_s")
    TIER_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    COST_S_FIELD_NUMBER: _ClassVar[int]
    tier: str
    score: float
    decided: bool
    evidence: str
    cost_s: float
    def __init__(self, tier: _Optional[str] = ..., score: _Optional[float] = ..., decided: _Optional[bool] = ..., evidence: _Optional[str] = ..., cost_s: _Optional[float] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("index", "attempt", "status", "score", "passed", "partial", "attribution", "tier", "reason", "tiers", "num_turns", "object", "num_sampled_tokens")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    NUM_TURNS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    NUM_SAMPLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    index: int
    attempt: int
    status: VerdictStatus
    score: float
    passed: bool
    partial: float
    attribution: _common_pb2.Attribution
    tier: str
    reason: str
    tiers: _containers.RepeatedCompositeFieldContainer[TierResult]
    num_turns: int
    object: _common_pb2.ObjectRef
    num_sampled_tokens: int
    def __init__(self, index: _Optional[int] = ..., attempt: _Optional[int] = ..., status: _Optional[_Union[VerdictStatus, str]] = ..., score: _Optional[float] = ..., passed: _Optional[bool] = ..., partial: _Optional[float] = ..., attribution: _Optional[_Union[_common_pb2.Attribution, str]] = ..., tier: _Optional[str] = ..., reason: _Optional[str] = ..., tiers: _Optional[_Iterable[_Union[TierResult, _Mapping]]] = ..., num_turns: _Optional[int] = ..., object: _Optional[_Union[_common_pb2.ObjectRef, _Mapping]] = ..., num_sampled_tokens: _Optional[int] = ...) -> None: ...

class TrajectoryVerified(_message.Message):
    __slots__ = ("group_id", "verdicts", "verifier_ref")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_REF_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    verdicts: _containers.RepeatedCompositeFieldContainer[Verdict]
    verifier_ref: str
    def __init__(self, group_id: _Optional[str] = ..., verdicts: _Optional[_Iterable[_Union[Verdict, _Mapping]]] = ..., verifier_ref: _Optional[str] = ...) -> None: ...

class ReadyMember(_message.Message):
    __slots__ = ("index", "attempt", "object", "reward", "passed")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    index: int
    attempt: int
    object: _common_pb2.ObjectRef
    reward: float
    passed: bool
    def __init__(self, index: _Optional[int] = ..., attempt: _Optional[int] = ..., object: _Optional[_Union[_common_pb2.ObjectRef, _Mapping]] = ..., reward: _Optional[float] = ..., passed: _Optional[bool] = ...) -> None: ...

class GroupReady(_message.Message):
    __slots__ = ("group_id", "domain", "level", "members", "num_excluded", "max_off_policy_steps")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    NUM_EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    MAX_OFF_POLICY_STEPS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    domain: str
    level: int
    members: _containers.RepeatedCompositeFieldContainer[ReadyMember]
    num_excluded: int
    max_off_policy_steps: int
    def __init__(self, group_id: _Optional[str] = ..., domain: _Optional[str] = ..., level: _Optional[int] = ..., members: _Optional[_Iterable[_Union[ReadyMember, _Mapping]]] = ..., num_excluded: _Optional[int] = ..., max_off_policy_steps: _Optional[int] = ...) -> None: ...

class GroupTaken(_message.Message):
    __slots__ = ("group_id", "into")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    INTO_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    into: _common_pb2.PolicyVersion
    def __init__(self, group_id: _Optional[str] = ..., into: _Optional[_Union[_common_pb2.PolicyVersion, _Mapping]] = ...) -> None: ...

class GroupCommitted(_message.Message):
    __slots__ = ("group_id", "version")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    version: _common_pb2.PolicyVersion
    def __init__(self, group_id: _Optional[str] = ..., version: _Optional[_Union[_common_pb2.PolicyVersion, _Mapping]] = ...) -> None: ...

class GroupDropped(_message.Message):
    __slots__ = ("group_id", "reason", "detail")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    reason: DropReason
    detail: str
    def __init__(self, group_id: _Optional[str] = ..., reason: _Optional[_Union[DropReason, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class ClosedMember(_message.Message):
    __slots__ = ("index", "graded", "passed", "score", "num_turns")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    GRADED_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    NUM_TURNS_FIELD_NUMBER: _ClassVar[int]
    index: int
    graded: bool
    passed: bool
    score: float
    num_turns: int
    def __init__(self, index: _Optional[int] = ..., graded: _Optional[bool] = ..., passed: _Optional[bool] = ..., score: _Optional[float] = ..., num_turns: _Optional[int] = ...) -> None: ...

class GroupClosed(_message.Message):
    __slots__ = ("group_id", "task_id", "domain", "level", "members")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    task_id: str
    domain: str
    level: int
    members: _containers.RepeatedCompositeFieldContainer[ClosedMember]
    def __init__(self, group_id: _Optional[str] = ..., task_id: _Optional[str] = ..., domain: _Optional[str] = ..., level: _Optional[int] = ..., members: _Optional[_Iterable[_Union[ClosedMember, _Mapping]]] = ...) -> None: ...

class PolicyPublished(_message.Message):
    __slots__ = ("policy", "parent", "made_by")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    MADE_BY_FIELD_NUMBER: _ClassVar[int]
    policy: _common_pb2.PolicyRef
    parent: _common_pb2.PolicyRef
    made_by: str
    def __init__(self, policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., parent: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., made_by: _Optional[str] = ...) -> None: ...

class PolicyPromoted(_message.Message):
    __slots__ = ("policy", "decision_id")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    policy: _common_pb2.PolicyRef
    decision_id: str
    def __init__(self, policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., decision_id: _Optional[str] = ...) -> None: ...

class PolicyRejected(_message.Message):
    __slots__ = ("policy", "decision_id", "reason")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    policy: _common_pb2.PolicyRef
    decision_id: str
    reason: str
    def __init__(self, policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., decision_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class AlertRaised(_message.Message):
    __slots__ = ("name", "text", "service")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    service: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., service: _Optional[str] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("topic", "partition", "offset", "key", "value", "error", "attempts", "consumer_group")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_GROUP_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    error: str
    attempts: int
    consumer_group: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., key: _Optional[str] = ..., value: _Optional[bytes] = ..., error: _Optional[str] = ..., attempts: _Optional[int] = ..., consumer_group: _Optional[str] = ...) -> None: ...
