from jm.common.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SlotUse(_message.Message):
    __slots__ = ("cause", "seconds")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    cause: str
    seconds: float
    def __init__(self, cause: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("worker_id", "policy", "is_routable", "num_slots", "num_playing", "sampled_tokens", "tokens_per_s", "entropy", "slot_use", "isolation")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    IS_ROUTABLE_FIELD_NUMBER: _ClassVar[int]
    NUM_SLOTS_FIELD_NUMBER: _ClassVar[int]
    NUM_PLAYING_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_S_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_FIELD_NUMBER: _ClassVar[int]
    SLOT_USE_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    policy: _common_pb2.PolicyRef
    is_routable: bool
    num_slots: int
    num_playing: int
    sampled_tokens: int
    tokens_per_s: float
    entropy: float
    slot_use: _containers.RepeatedCompositeFieldContainer[SlotUse]
    isolation: str
    def __init__(self, worker_id: _Optional[str] = ..., policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., is_routable: _Optional[bool] = ..., num_slots: _Optional[int] = ..., num_playing: _Optional[int] = ..., sampled_tokens: _Optional[int] = ..., tokens_per_s: _Optional[float] = ..., entropy: _Optional[float] = ..., slot_use: _Optional[_Iterable[_Union[SlotUse, _Mapping]]] = ..., isolation: _Optional[str] = ...) -> None: ...
