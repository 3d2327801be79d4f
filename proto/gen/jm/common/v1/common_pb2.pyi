import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Split(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SPLIT_UNSPECIFIED: _ClassVar[Split]
    SPLIT_TRAIN: _ClassVar[Split]
    SPLIT_HELDOUT: _ClassVar[Split]

class Attribution(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTRIBUTION_UNSPECIFIED: _ClassVar[Attribution]
    ATTRIBUTION_POLICY: _ClassVar[Attribution]
    ATTRIBUTION_BUDGET: _ClassVar[Attribution]
    ATTRIBUTION_SANDBOX: _ClassVar[Attribution]
    ATTRIBUTION_VERIFIER: _ClassVar[Attribution]
    ATTRIBUTION_ENGINE: _ClassVar[Attribution]
    ATTRIBUTION_SCHEDULER: _ClassVar[Attribution]
    ATTRIBUTION_STORAGE: _ClassVar[Attribution]
    ATTRIBUTION_BAD_TASK: _ClassVar[Attribution]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_USER: _ClassVar[Role]
    ROLE_ASSISTANT: _ClassVar[Role]
    ROLE_TOOL: _ClassVar[Role]
SPLIT_UNSPECIFIED: Split
SPLIT_TRAIN: Split
SPLIT_HELDOUT: Split
ATTRIBUTION_UNSPECIFIED: Attribution
ATTRIBUTION_POLICY: Attribution
ATTRIBUTION_BUDGET: Attribution
ATTRIBUTION_SANDBOX: Attribution
ATTRIBUTION_VERIFIER: Attribution
ATTRIBUTION_ENGINE: Attribution
ATTRIBUTION_SCHEDULER: Attribution
ATTRIBUTION_STORAGE: Attribution
ATTRIBUTION_BAD_TASK: Attribution
ROLE_UNSPECIFIED: Role
ROLE_USER: Role
ROLE_ASSISTANT: Role
ROLE_TOOL: Role

class Message(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: Role
    content: str
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., content: _Optional[str] = ...) -> None: ...

class ToolSpec(_message.Message):
    __slots__ = ("name", "description", "parameters_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters_json: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters_json: _Optional[str] = ...) -> None: ...

class TaskFile(_message.Message):
    __slots__ = ("path", "content")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: bytes
    def __init__(self, path: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_turns", "max_turn_tokens", "max_tokens", "tool_cpu")
    MAX_TURNS_FIELD_NUMBER: _ClassVar[int]
    MAX_TURN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CPU_FIELD_NUMBER: _ClassVar[int]
    max_turns: int
    max_turn_tokens: int
    max_tokens: int
    tool_cpu: _duration_pb2.Duration
    def __init__(self, max_turns: _Optional[int] = ..., max_turn_tokens: _Optional[int] = ..., max_tokens: _Optional[int] = ..., tool_cpu: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("task_id", "domain", "domain_ref", "split", "level", "seed", "messages", "tools", "files", "limits", "verification_json", "tags")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_REF_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_JSON_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    domain: str
    domain_ref: str
    split: Split
    level: int
    seed: int
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    tools: _containers.RepeatedCompositeFieldContainer[ToolSpec]
    files: _containers.RepeatedCompositeFieldContainer[TaskFile]
    limits: Limits
    verification_json: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task_id: _Optional[str] = ..., domain: _Optional[str] = ..., domain_ref: _Optional[str] = ..., split: _Optional[_Union[Split, str]] = ..., level: _Optional[int] = ..., seed: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[ToolSpec, _Mapping]]] = ..., files: _Optional[_Iterable[_Union[TaskFile, _Mapping]]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., verification_json: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class PolicyVersion(_message.Message):
    __slots__ = ("incarnation", "step")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    step: int
    def __init__(self, incarnation: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class PolicyRef(_message.Message):
    __slots__ = ("run_id", "version", "uri", "manifest_sha256")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    version: PolicyVersion
    uri: str
    manifest_sha256: str
    def __init__(self, run_id: _Optional[str] = ..., version: _Optional[_Union[PolicyVersion, _Mapping]] = ..., uri: _Optional[str] = ..., manifest_sha256: _Optional[str] = ...) -> None: ...

class PolicySelector(_message.Message):
    __slots__ = ("latest_of_run", "pinned")
    LATEST_OF_RUN_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    latest_of_run: str
    pinned: PolicyRef
    def __init__(self, latest_of_run: _Optional[str] = ..., pinned: _Optional[_Union[PolicyRef, _Mapping]] = ...) -> None: ...

class ObjectRef(_message.Message):
    __slots__ = ("uri", "sha256", "num_bytes")
    URI_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    NUM_BYTES_FIELD_NUMBER: _ClassVar[int]
    uri: str
    sha256: str
    num_bytes: int
    def __init__(self, uri: _Optional[str] = ..., sha256: _Optional[str] = ..., num_bytes: _Optional[int] = ...) -> None: ...
