import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Ending(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENDING_UNSPECIFIED: _ClassVar[Ending]
    ENDING_EXITED: _ClassVar[Ending]
    ENDING_SIGNALLED: _ClassVar[Ending]
    ENDING_WALL_TIMEOUT: _ClassVar[Ending]
    ENDING_CPU_TIMEOUT: _ClassVar[Ending]
    ENDING_OUT_OF_MEMORY: _ClassVar[Ending]
    ENDING_TOO_MANY_PROCESSES: _ClassVar[Ending]
    ENDING_DISK_FULL: _ClassVar[Ending]
    ENDING_OUTPUT_LIMIT: _ClassVar[Ending]
    ENDING_KILLED_BY_CALLER: _ClassVar[Ending]
    ENDING_INFRA_ERROR: _ClassVar[Ending]

class EntryKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENTRY_KIND_UNSPECIFIED: _ClassVar[EntryKind]
    ENTRY_KIND_FILE: _ClassVar[EntryKind]
    ENTRY_KIND_FOLDER: _ClassVar[EntryKind]
    ENTRY_KIND_LINK: _ClassVar[EntryKind]
    ENTRY_KIND_OTHER: _ClassVar[EntryKind]
ENDING_UNSPECIFIED: Ending
ENDING_EXITED: Ending
ENDING_SIGNALLED: Ending
ENDING_WALL_TIMEOUT: Ending
ENDING_CPU_TIMEOUT: Ending
ENDING_OUT_OF_MEMORY: Ending
ENDING_TOO_MANY_PROCESSES: Ending
ENDING_DISK_FULL: Ending
ENDING_OUTPUT_LIMIT: Ending
ENDING_KILLED_BY_CALLER: Ending
ENDING_INFRA_ERROR: Ending
ENTRY_KIND_UNSPECIFIED: EntryKind
ENTRY_KIND_FILE: EntryKind
ENTRY_KIND_FOLDER: EntryKind
ENTRY_KIND_LINK: EntryKind
ENTRY_KIND_OTHER: EntryKind

class BoxFile(_message.Message):
    __slots__ = ("path", "content")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: bytes
    def __init__(self, path: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...

class BoxLimits(_message.Message):
    __slots__ = ("memory_bytes", "max_processes", "disk_bytes", "max_files", "output_bytes", "log_bytes", "file_bytes", "max_open_files")
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_FILES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    memory_bytes: int
    max_processes: int
    disk_bytes: int
    max_files: int
    output_bytes: int
    log_bytes: int
    file_bytes: int
    max_open_files: int
    def __init__(self, memory_bytes: _Optional[int] = ..., max_processes: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., max_files: _Optional[int] = ..., output_bytes: _Optional[int] = ..., log_bytes: _Optional[int] = ..., file_bytes: _Optional[int] = ..., max_open_files: _Optional[int] = ...) -> None: ...

class CreateSandboxRequest(_message.Message):
    __slots__ = ("idempotency_key", "files", "limits", "lease", "image", "env", "folder", "egress")
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    EGRESS_FIELD_NUMBER: _ClassVar[int]
    idempotency_key: str
    files: _containers.RepeatedCompositeFieldContainer[BoxFile]
    limits: BoxLimits
    lease: _duration_pb2.Duration
    image: str
    env: _containers.RepeatedScalarFieldContainer[str]
    folder: str
    egress: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, idempotency_key: _Optional[str] = ..., files: _Optional[_Iterable[_Union[BoxFile, _Mapping]]] = ..., limits: _Optional[_Union[BoxLimits, _Mapping]] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., image: _Optional[str] = ..., env: _Optional[_Iterable[str]] = ..., folder: _Optional[str] = ..., egress: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateSandboxResponse(_message.Message):
    __slots__ = ("sandbox_id", "isolation", "until")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    isolation: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, sandbox_id: _Optional[str] = ..., isolation: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ForkSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id", "count", "lease", "snapshot_id")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    count: int
    lease: _duration_pb2.Duration
    snapshot_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., count: _Optional[int] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class ForkSandboxResponse(_message.Message):
    __slots__ = ("sandbox_ids", "until")
    SANDBOX_IDS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    sandbox_ids: _containers.RepeatedScalarFieldContainer[str]
    until: _timestamp_pb2.Timestamp
    def __init__(self, sandbox_ids: _Optional[_Iterable[str]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SnapshotSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id", "lease")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    lease: _duration_pb2.Duration
    def __init__(self, sandbox_id: _Optional[str] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SnapshotSandboxResponse(_message.Message):
    __slots__ = ("snapshot_id", "until")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, snapshot_id: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RestoreSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id", "snapshot_id")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    snapshot_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class RestoreSandboxResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteSnapshotsRequest(_message.Message):
    __slots__ = ("snapshot_ids",)
    SNAPSHOT_IDS_FIELD_NUMBER: _ClassVar[int]
    snapshot_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, snapshot_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteSnapshotsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PythonProgram(_message.Message):
    __slots__ = ("source", "argv")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    source: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, source: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("argv", "env")
    ARGV_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    argv: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, argv: _Optional[_Iterable[str]] = ..., env: _Optional[_Iterable[str]] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("sandbox_id", "python", "command", "shell", "stdin", "timeout", "cpu", "folder")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SHELL_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    python: PythonProgram
    command: Command
    shell: str
    stdin: bytes
    timeout: _duration_pb2.Duration
    cpu: _duration_pb2.Duration
    folder: str
    def __init__(self, sandbox_id: _Optional[str] = ..., python: _Optional[_Union[PythonProgram, _Mapping]] = ..., command: _Optional[_Union[Command, _Mapping]] = ..., shell: _Optional[str] = ..., stdin: _Optional[bytes] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cpu: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., folder: _Optional[str] = ...) -> None: ...

class ExecRequest(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: RunRequest
    def __init__(self, run: _Optional[_Union[RunRequest, _Mapping]] = ...) -> None: ...

class ExecResponse(_message.Message):
    __slots__ = ("stdout", "stderr", "result")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    stdout: bytes
    stderr: bytes
    result: RunResult
    def __init__(self, stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., result: _Optional[_Union[RunResult, _Mapping]] = ...) -> None: ...

class RunPythonRequest(_message.Message):
    __slots__ = ("sandbox_id", "python", "stdin", "timeout", "cpu")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    python: PythonProgram
    stdin: bytes
    timeout: _duration_pb2.Duration
    cpu: _duration_pb2.Duration
    def __init__(self, sandbox_id: _Optional[str] = ..., python: _Optional[_Union[PythonProgram, _Mapping]] = ..., stdin: _Optional[bytes] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cpu: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RunPythonResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: RunResult
    def __init__(self, result: _Optional[_Union[RunResult, _Mapping]] = ...) -> None: ...

class RunResult(_message.Message):
    __slots__ = ("ending", "exit_code", "signal", "stdout", "stderr", "truncated", "wall", "cpu", "infra_reason", "isolation", "control_passed", "used", "stdout_cut", "stderr_cut")
    ENDING_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    WALL_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    INFRA_REASON_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    CONTROL_PASSED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    STDOUT_CUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_CUT_FIELD_NUMBER: _ClassVar[int]
    ending: Ending
    exit_code: int
    signal: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    wall: _duration_pb2.Duration
    cpu: _duration_pb2.Duration
    infra_reason: str
    isolation: str
    control_passed: bool
    used: Usage
    stdout_cut: OutputCut
    stderr_cut: OutputCut
    def __init__(self, ending: _Optional[_Union[Ending, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., truncated: _Optional[bool] = ..., wall: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cpu: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., infra_reason: _Optional[str] = ..., isolation: _Optional[str] = ..., control_passed: _Optional[bool] = ..., used: _Optional[_Union[Usage, _Mapping]] = ..., stdout_cut: _Optional[_Union[OutputCut, _Mapping]] = ..., stderr_cut: _Optional[_Union[OutputCut, _Mapping]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("memory_peak_bytes", "processes_peak", "disk_bytes", "num_files", "output_bytes")
    MEMORY_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_PEAK_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    NUM_FILES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    memory_peak_bytes: int
    processes_peak: int
    disk_bytes: int
    num_files: int
    output_bytes: int
    def __init__(self, memory_peak_bytes: _Optional[int] = ..., processes_peak: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., num_files: _Optional[int] = ..., output_bytes: _Optional[int] = ...) -> None: ...

class OutputCut(_message.Message):
    __slots__ = ("head_bytes", "total_bytes", "log")
    HEAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    head_bytes: int
    total_bytes: int
    log: str
    def __init__(self, head_bytes: _Optional[int] = ..., total_bytes: _Optional[int] = ..., log: _Optional[str] = ...) -> None: ...

class RunBatchRequest(_message.Message):
    __slots__ = ("runs",)
    RUNS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunRequest]
    def __init__(self, runs: _Optional[_Iterable[_Union[RunRequest, _Mapping]]] = ...) -> None: ...

class RunBatchResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[RunResult]
    def __init__(self, results: _Optional[_Iterable[_Union[RunResult, _Mapping]]] = ...) -> None: ...

class WriteFilesRequest(_message.Message):
    __slots__ = ("sandbox_id", "files")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    files: _containers.RepeatedCompositeFieldContainer[BoxFile]
    def __init__(self, sandbox_id: _Optional[str] = ..., files: _Optional[_Iterable[_Union[BoxFile, _Mapping]]] = ...) -> None: ...

class WriteFilesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadFilesRequest(_message.Message):
    __slots__ = ("sandbox_id", "paths")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    paths: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sandbox_id: _Optional[str] = ..., paths: _Optional[_Iterable[str]] = ...) -> None: ...

class ReadFilesResponse(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[BoxFile]
    def __init__(self, files: _Optional[_Iterable[_Union[BoxFile, _Mapping]]] = ...) -> None: ...

class ReadFileRequest(_message.Message):
    __slots__ = ("sandbox_id", "path", "log", "offset", "length")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    log: str
    offset: int
    length: int
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., log: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class ReadFileResponse(_message.Message):
    __slots__ = ("content", "total_bytes")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    total_bytes: int
    def __init__(self, content: _Optional[bytes] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class ListDirectoryRequest(_message.Message):
    __slots__ = ("sandbox_id", "path")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class DirectoryEntry(_message.Message):
    __slots__ = ("name", "kind", "size_bytes", "mode")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: EntryKind
    size_bytes: int
    mode: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[EntryKind, str]] = ..., size_bytes: _Optional[int] = ..., mode: _Optional[int] = ...) -> None: ...

class ListDirectoryResponse(_message.Message):
    __slots__ = ("entries", "truncated")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[DirectoryEntry]
    truncated: bool
    def __init__(self, entries: _Optional[_Iterable[_Union[DirectoryEntry, _Mapping]]] = ..., truncated: _Optional[bool] = ...) -> None: ...

class RenewLeasesRequest(_message.Message):
    __slots__ = ("sandbox_ids", "lease")
    SANDBOX_IDS_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    sandbox_ids: _containers.RepeatedScalarFieldContainer[str]
    lease: _duration_pb2.Duration
    def __init__(self, sandbox_ids: _Optional[_Iterable[str]] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RenewLeasesResponse(_message.Message):
    __slots__ = ("lost",)
    LOST_FIELD_NUMBER: _ClassVar[int]
    lost: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lost: _Optional[_Iterable[str]] = ...) -> None: ...

class DestroySandboxesRequest(_message.Message):
    __slots__ = ("sandbox_ids",)
    SANDBOX_IDS_FIELD_NUMBER: _ClassVar[int]
    sandbox_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sandbox_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class DestroySandboxesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSandboxesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SandboxInfo(_message.Message):
    __slots__ = ("sandbox_id", "until", "image")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    until: _timestamp_pb2.Timestamp
    image: str
    def __init__(self, sandbox_id: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., image: _Optional[str] = ...) -> None: ...

class ListSandboxesResponse(_message.Message):
    __slots__ = ("sandboxes",)
    SANDBOXES_FIELD_NUMBER: _ClassVar[int]
    sandboxes: _containers.RepeatedCompositeFieldContainer[SandboxInfo]
    def __init__(self, sandboxes: _Optional[_Iterable[_Union[SandboxInfo, _Mapping]]] = ...) -> None: ...

class GetCapabilitiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapabilitiesResponse(_message.Message):
    __slots__ = ("isolation", "enforced", "not_enforced", "images", "forking", "cgroups")
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    ENFORCED_FIELD_NUMBER: _ClassVar[int]
    NOT_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    FORKING_FIELD_NUMBER: _ClassVar[int]
    CGROUPS_FIELD_NUMBER: _ClassVar[int]
    isolation: str
    enforced: _containers.RepeatedScalarFieldContainer[str]
    not_enforced: _containers.RepeatedScalarFieldContainer[str]
    images: _containers.RepeatedCompositeFieldContainer[ImageInfo]
    forking: str
    cgroups: str
    def __init__(self, isolation: _Optional[str] = ..., enforced: _Optional[_Iterable[str]] = ..., not_enforced: _Optional[_Iterable[str]] = ..., images: _Optional[_Iterable[_Union[ImageInfo, _Mapping]]] = ..., forking: _Optional[str] = ..., cgroups: _Optional[str] = ...) -> None: ...

class ImageInfo(_message.Message):
    __slots__ = ("name", "root", "has_python", "num_ready")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    HAS_PYTHON_FIELD_NUMBER: _ClassVar[int]
    NUM_READY_FIELD_NUMBER: _ClassVar[int]
    name: str
    root: str
    has_python: bool
    num_ready: int
    def __init__(self, name: _Optional[str] = ..., root: _Optional[str] = ..., has_python: _Optional[bool] = ..., num_ready: _Optional[int] = ...) -> None: ...
