"""jm.sandbox.v1 messages to the service's records and back. Absent or zero means the service's default."""

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from jm.sandbox.v1 import sandbox_pb2 as pb

from journeyman.boxes.convert import run_result_to_proto
from journeyman.convert.times import seconds_from_duration
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.app import DEFAULT_LEASE_S
from sandbox_service.core.programs import BoxRun, Program
from sandbox_service.core.shape import BoxShape

MAX_LIMIT_S = 3600.0


def shape_from_proto(message: pb.BoxLimits, default: BoxShape) -> BoxShape:
    """Limits of a box. INVALID_INPUT where one is negative."""
    wanted = {
        "memory_bytes": message.memory_bytes,
        "max_processes": message.max_processes,
        "disk_bytes": message.disk_bytes,
        "max_files": message.max_files,
        "output_bytes": message.output_bytes,
    }
    for name, value in wanted.items():
        if value < 0:
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"limits.{name} = {value}: must not be negative")
    return BoxShape.from_json({name: value or default.to_json()[name] for name, value in wanted.items()})


def files_from_proto(files: Iterable[pb.BoxFile]) -> dict[str, bytes]:
    """Contents by path."""
    return {file.path: file.content for file in files}


def lease_s_from_proto(has_lease: bool, lease: Duration) -> float:
    """Life without renewal."""
    return seconds_from_duration(lease) if has_lease else DEFAULT_LEASE_S


def program_from_proto(message: pb.RunRequest, default: Program) -> Program:
    """A program with its limits. INVALID_INPUT where there is none, or a limit is out of range."""
    timeout_s = _limit_s("timeout", message.timeout, default.timeout_s)
    cpu_s = _limit_s("cpu", message.cpu, default.cpu_s)
    kind = message.WhichOneof("program")
    if kind == "python":
        source, argv = message.python.source, tuple(message.python.argv)
        return Program(source=source, argv=argv, stdin=message.stdin, timeout_s=timeout_s, cpu_s=cpu_s)
    if kind == "command" and message.command.argv:
        argv, env = tuple(message.command.argv), tuple(message.command.env)
        return Program(argv=argv, env=env, stdin=message.stdin, timeout_s=timeout_s, cpu_s=cpu_s)
    raise JourneymanError(ErrorCode.INVALID_INPUT, "a run needs python, or a command with at least one argument")


def run_to_proto(run: BoxRun, isolation: str) -> pb.RunResult:
    """A result."""
    return run_result_to_proto(run.result, isolation=isolation, signal=run.signal)


def _limit_s(name: str, message: Duration, default_s: float) -> float:
    seconds = seconds_from_duration(message) or default_s
    if not 0 < seconds <= MAX_LIMIT_S:
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"{name} of {seconds:g} s: must be above 0 and at most {MAX_LIMIT_S:g} s"
        )
    return seconds
