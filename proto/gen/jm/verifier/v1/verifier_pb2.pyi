from jm.common.v1 import common_pb2 as _common_pb2
from jm.events.v1 import events_pb2 as _events_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VerifyGroupRequest(_message.Message):
    __slots__ = ("group_id", "object")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    object: _common_pb2.ObjectRef
    def __init__(self, group_id: _Optional[str] = ..., object: _Optional[_Union[_common_pb2.ObjectRef, _Mapping]] = ...) -> None: ...

class VerifyGroupResponse(_message.Message):
    __slots__ = ("verified",)
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    verified: _events_pb2.TrajectoryVerified
    def __init__(self, verified: _Optional[_Union[_events_pb2.TrajectoryVerified, _Mapping]] = ...) -> None: ...

class ListDomainsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DomainInfo(_message.Message):
    __slots__ = ("name", "ref", "tiers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    ref: str
    tiers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., ref: _Optional[str] = ..., tiers: _Optional[_Iterable[str]] = ...) -> None: ...

class ListDomainsResponse(_message.Message):
    __slots__ = ("domains",)
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    domains: _containers.RepeatedCompositeFieldContainer[DomainInfo]
    def __init__(self, domains: _Optional[_Iterable[_Union[DomainInfo, _Mapping]]] = ...) -> None: ...
