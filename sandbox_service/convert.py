"""jm.sandbox.v1 messages to the service's records and back. Absent or zero means the service's default."""

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from jm.sandbox.v1 import sandbox_pb2 as pb

from journeyman.boxes.convert import run_result_to_proto
from journeyman.boxes.paths import checked_path
from journeyman.boxes.port import OutputPiece, Stream
from journeyman.convert.times import seconds_from_duration
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.core.programs import BoxRun, Program, checked_env
from sandbox_service.core.shape import RANGES, BoxPlan, BoxShape
from sandbox_service.living import DEFAULT_LEASE_S

MAX_LIMIT_S = 3600.0


def shape_from_proto(message: pb.BoxLimits, default: BoxShape) -> BoxShape:
    """Limits of a box. INVALID_INPUT where one is absurd."""
    wanted = {name: int(getattr(message, name)) for name in RANGES}
    for name, value in wanted.items():
        least, most = RANGES[name]
        if value and not least <= value <= most:
            message_text = f"limits.{name} = {value}: must be from {least} to {most}, or 0 for the service's default"
            raise JourneymanError(ErrorCode.INVALID_INPUT, message_text)
    return BoxShape.from_json({name: value or default.to_json()[name] for name, value in wanted.items()})


def plan_from_proto(message: pb.CreateSandboxRequest, default: BoxShape) -> BoxPlan:
    """Limits, environment and folder of a box. INVALID_INPUT where one is absurd."""
    return BoxPlan(
        shape=shape_from_proto(message.limits, default),
        env=checked_env(message.env),
        folder=checked_path(message.folder) if message.folder else "",
    )


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
    source, argv, env = _what_to_run(message)
    return Program(
        source=source,
        argv=argv,
        env=env,
        folder=checked_path(message.folder) if message.folder else "",
        stdin=message.stdin,
        timeout_s=timeout_s,
        cpu_s=cpu_s,
    )


def python_from_proto(message: pb.RunPythonRequest, default: Program) -> Program:
    """A Python program with its limits."""
    run = pb.RunRequest(python=message.python, stdin=message.stdin, timeout=message.timeout, cpu=message.cpu)
    return program_from_proto(run, default)


def _what_to_run(message: pb.RunRequest) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Source of Python, else None; arguments; environment."""
    kind = message.WhichOneof("program")
    if kind == "python":
        return message.python.source, tuple(message.python.argv), ()
    if kind == "shell":
        return None, ("sh", "-c", message.shell), ()
    if kind == "command" and message.command.argv:
        return None, tuple(message.command.argv), checked_env(message.command.env)
    raise JourneymanError(
        ErrorCode.INVALID_INPUT, "a run needs python, a shell line, or a command with at least one argument"
    )


def run_to_proto(run: BoxRun, isolation: str) -> pb.RunResult:
    """A result."""
    return run_result_to_proto(run.result, isolation=isolation, signal=run.signal)


def event_to_proto(event: OutputPiece | BoxRun, isolation: str) -> pb.ExecResponse:
    """A piece of output, or the result."""
    if isinstance(event, BoxRun):
        return pb.ExecResponse(result=run_to_proto(event, isolation))
    if event.stream is Stream.STDOUT:
        return pb.ExecResponse(stdout=event.content)
    return pb.ExecResponse(stderr=event.content)


def _limit_s(name: str, message: Duration, default_s: float) -> float:
    seconds = seconds_from_duration(message) or default_s
    if not 0 < seconds <= MAX_LIMIT_S:
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"{name} of {seconds:g} s: must be above 0 and at most {MAX_LIMIT_S:g} s"
        )
    return seconds
