from jm.common.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Policy(_message.Message):
    __slots__ = ("ref", "parent", "made_by", "standing")
    REF_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    MADE_BY_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.PolicyRef
    parent: _common_pb2.PolicyRef
    made_by: str
    standing: str
    def __init__(self, ref: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., parent: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., made_by: _Optional[str] = ..., standing: _Optional[str] = ...) -> None: ...

class ListPoliciesRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ListPoliciesResponse(_message.Message):
    __slots__ = ("policies",)
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[Policy]
    def __init__(self, policies: _Optional[_Iterable[_Union[Policy, _Mapping]]] = ...) -> None: ...

class StartEvaluationRequest(_message.Message):
    __slots__ = ("evaluation_id", "policy", "domains", "tasks_per_domain", "seed", "temperature")
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    TASKS_PER_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    evaluation_id: str
    policy: _common_pb2.PolicyRef
    domains: _containers.RepeatedScalarFieldContainer[str]
    tasks_per_domain: int
    seed: int
    temperature: float
    def __init__(self, evaluation_id: _Optional[str] = ..., policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., domains: _Optional[_Iterable[str]] = ..., tasks_per_domain: _Optional[int] = ..., seed: _Optional[int] = ..., temperature: _Optional[float] = ...) -> None: ...

class DomainScore(_message.Message):
    __slots__ = ("domain", "num_graded", "num_passed", "num_excluded")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    NUM_GRADED_FIELD_NUMBER: _ClassVar[int]
    NUM_PASSED_FIELD_NUMBER: _ClassVar[int]
    NUM_EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    domain: str
    num_graded: int
    num_passed: int
    num_excluded: int
    def __init__(self, domain: _Optional[str] = ..., num_graded: _Optional[int] = ..., num_passed: _Optional[int] = ..., num_excluded: _Optional[int] = ...) -> None: ...

class Evaluation(_message.Message):
    __slots__ = ("evaluation_id", "policy", "domains", "is_complete", "num_tasks")
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    NUM_TASKS_FIELD_NUMBER: _ClassVar[int]
    evaluation_id: str
    policy: _common_pb2.PolicyRef
    domains: _containers.RepeatedCompositeFieldContainer[DomainScore]
    is_complete: bool
    num_tasks: int
    def __init__(self, evaluation_id: _Optional[str] = ..., policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., domains: _Optional[_Iterable[_Union[DomainScore, _Mapping]]] = ..., is_complete: _Optional[bool] = ..., num_tasks: _Optional[int] = ...) -> None: ...

class StartEvaluationResponse(_message.Message):
    __slots__ = ("evaluation",)
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    evaluation: Evaluation
    def __init__(self, evaluation: _Optional[_Union[Evaluation, _Mapping]] = ...) -> None: ...

class GetEvaluationRequest(_message.Message):
    __slots__ = ("evaluation_id",)
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    evaluation_id: str
    def __init__(self, evaluation_id: _Optional[str] = ...) -> None: ...

class GetEvaluationResponse(_message.Message):
    __slots__ = ("evaluation",)
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    evaluation: Evaluation
    def __init__(self, evaluation: _Optional[_Union[Evaluation, _Mapping]] = ...) -> None: ...

class RunGateRequest(_message.Message):
    __slots__ = ("decision_id", "candidate_evaluation_id", "champion_evaluation_id", "margin", "alpha")
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    CHAMPION_EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    decision_id: str
    candidate_evaluation_id: str
    champion_evaluation_id: str
    margin: float
    alpha: float
    def __init__(self, decision_id: _Optional[str] = ..., candidate_evaluation_id: _Optional[str] = ..., champion_evaluation_id: _Optional[str] = ..., margin: _Optional[float] = ..., alpha: _Optional[float] = ...) -> None: ...

class DomainDecision(_message.Message):
    __slots__ = ("domain", "difference", "p_value", "is_non_inferior", "num_pairs")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    P_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_NON_INFERIOR_FIELD_NUMBER: _ClassVar[int]
    NUM_PAIRS_FIELD_NUMBER: _ClassVar[int]
    domain: str
    difference: float
    p_value: float
    is_non_inferior: bool
    num_pairs: int
    def __init__(self, domain: _Optional[str] = ..., difference: _Optional[float] = ..., p_value: _Optional[float] = ..., is_non_inferior: _Optional[bool] = ..., num_pairs: _Optional[int] = ...) -> None: ...

class RunGateResponse(_message.Message):
    __slots__ = ("decision_id", "promoted", "reason", "domains")
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    decision_id: str
    promoted: bool
    reason: str
    domains: _containers.RepeatedCompositeFieldContainer[DomainDecision]
    def __init__(self, decision_id: _Optional[str] = ..., promoted: _Optional[bool] = ..., reason: _Optional[str] = ..., domains: _Optional[_Iterable[_Union[DomainDecision, _Mapping]]] = ...) -> None: ...

class GetChampionRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetChampionResponse(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: Policy
    def __init__(self, policy: _Optional[_Union[Policy, _Mapping]] = ...) -> None: ...
