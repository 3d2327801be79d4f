"""Box results to and from jm.sandbox.v1. Used by the client here and by the sandbox service's edge; total in both directions."""

from jm.sandbox.v1 import sandbox_pb2 as pb

from journeyman.boxes.port import (
    BoxLimits,
    DirectoryEntry,
    Ending,
    EntryKind,
    OutputCut,
    OutputPiece,
    RunResult,
    Stream,
    Usage,
)
from journeyman.convert.times import seconds_from_duration, seconds_to_duration

_TO_PROTO = {
    Ending.EXITED: pb.ENDING_EXITED,
    Ending.SIGNALLED: pb.ENDING_SIGNALLED,
    Ending.WALL_TIMEOUT: pb.ENDING_WALL_TIMEOUT,
    Ending.CPU_TIMEOUT: pb.ENDING_CPU_TIMEOUT,
    Ending.OUT_OF_MEMORY: pb.ENDING_OUT_OF_MEMORY,
    Ending.TOO_MANY_PROCESSES: pb.ENDING_TOO_MANY_PROCESSES,
    Ending.DISK_FULL: pb.ENDING_DISK_FULL,
    Ending.OUTPUT_LIMIT: pb.ENDING_OUTPUT_LIMIT,
    Ending.KILLED_BY_CALLER: pb.ENDING_KILLED_BY_CALLER,
    Ending.INFRA_ERROR: pb.ENDING_INFRA_ERROR,
}
_FROM_PROTO = {number: ending for ending, number in _TO_PROTO.items()}
_KIND_TO_PROTO = {
    EntryKind.FILE: pb.ENTRY_KIND_FILE,
    EntryKind.FOLDER: pb.ENTRY_KIND_FOLDER,
    EntryKind.LINK: pb.ENTRY_KIND_LINK,
    EntryKind.OTHER: pb.ENTRY_KIND_OTHER,
}
_KIND_FROM_PROTO = {number: kind for kind, number in _KIND_TO_PROTO.items()}


def limits_to_proto(limits: BoxLimits) -> pb.BoxLimits:
    """For the wire."""
    return pb.BoxLimits(
        memory_bytes=limits.memory_bytes,
        max_processes=limits.max_processes,
        disk_bytes=limits.disk_bytes,
        max_files=limits.max_files,
        output_bytes=limits.output_bytes,
        log_bytes=limits.log_bytes,
        file_bytes=limits.file_bytes,
        max_open_files=limits.max_open_files,
    )


def run_result_to_proto(result: RunResult, *, isolation: str, signal: int = 0) -> pb.RunResult:
    """For the wire."""
    return pb.RunResult(
        ending=_TO_PROTO[result.ending],
        exit_code=result.exit_code or 0,
        signal=signal,
        stdout=result.stdout,
        stderr=result.stderr,
        truncated=result.truncated,
        wall=seconds_to_duration(result.wall_s),
        cpu=seconds_to_duration(result.cpu_s),
        infra_reason=result.infra_reason,
        isolation=isolation,
        control_passed=result.control_passed,
        used=_usage_to_proto(result.used),
        stdout_cut=_cut_to_proto(result.stdout_cut),
        stderr_cut=_cut_to_proto(result.stderr_cut),
    )


def run_result_from_proto(message: pb.RunResult) -> RunResult:
    """From the wire. An ending we do not know is an infrastructure error."""
    ending = _FROM_PROTO.get(message.ending, Ending.INFRA_ERROR)
    unknown = f"unknown ending {message.ending}" if message.ending not in _FROM_PROTO else ""
    return RunResult(
        ending=ending,
        exit_code=message.exit_code if ending is Ending.EXITED else None,
        stdout=message.stdout,
        stderr=message.stderr,
        wall_s=seconds_from_duration(message.wall),
        cpu_s=seconds_from_duration(message.cpu),
        infra_reason=message.infra_reason or unknown,
        control_passed=message.control_passed,
        truncated=message.truncated,
        used=_usage_from_proto(message.used),
        stdout_cut=_cut_from_proto(message.stdout_cut) if message.HasField("stdout_cut") else None,
        stderr_cut=_cut_from_proto(message.stderr_cut) if message.HasField("stderr_cut") else None,
    )


def event_from_proto(message: pb.ExecResponse) -> OutputPiece | RunResult:
    """A piece of output, or the result."""
    match message.WhichOneof("event"):
        case "stdout":
            return OutputPiece(stream=Stream.STDOUT, content=message.stdout)
        case "stderr":
            return OutputPiece(stream=Stream.STDERR, content=message.stderr)
        case _:
            return run_result_from_proto(message.result)


def entry_to_proto(entry: DirectoryEntry) -> pb.DirectoryEntry:
    """For the wire."""
    return pb.DirectoryEntry(
        name=entry.name, kind=_KIND_TO_PROTO[entry.kind], size_bytes=entry.size_bytes, mode=entry.mode
    )


def entry_from_proto(message: pb.DirectoryEntry) -> DirectoryEntry:
    """From the wire."""
    kind = _KIND_FROM_PROTO.get(message.kind, EntryKind.OTHER)
    return DirectoryEntry(name=message.name, kind=kind, size_bytes=message.size_bytes, mode=message.mode)


def _usage_to_proto(used: Usage) -> pb.Usage:
    return pb.Usage(
        memory_peak_bytes=used.memory_peak_bytes,
        processes_peak=used.processes_peak,
        disk_bytes=used.disk_bytes,
        num_files=used.num_files,
        output_bytes=used.output_bytes,
    )


def _usage_from_proto(message: pb.Usage) -> Usage:
    return Usage(
        memory_peak_bytes=message.memory_peak_bytes,
        processes_peak=message.processes_peak,
        disk_bytes=message.disk_bytes,
        num_files=message.num_files,
        output_bytes=message.output_bytes,
    )


def _cut_to_proto(cut: OutputCut | None) -> pb.OutputCut | None:
    if cut is None:
        return None
    return pb.OutputCut(head_bytes=cut.head_bytes, total_bytes=cut.total_bytes, log=cut.log)


def _cut_from_proto(message: pb.OutputCut) -> OutputCut:
    return OutputCut(head_bytes=message.head_bytes, total_bytes=message.total_bytes, log=message.log)
