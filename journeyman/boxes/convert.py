"""Box results to and from jm.sandbox.v1. Used by the client here and by the sandbox service's edge; total in both directions."""

from jm.sandbox.v1 import sandbox_pb2 as pb

from journeyman.boxes.port import Ending, RunResult
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
    )
