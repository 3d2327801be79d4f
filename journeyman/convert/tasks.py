"""Tasks and object references."""

from jm.common.v1 import common_pb2 as pb

from journeyman.convert.enums import role_from_proto, role_to_proto, split_from_proto, split_to_proto
from journeyman.convert.times import seconds_from_duration, seconds_to_duration
from journeyman.records import Limits, Message, ObjectRef, Task, TaskFile, ToolSpec


def task_to_proto(task: Task) -> pb.Task:
    """Field by field."""
    return pb.Task(
        task_id=task.task_id,
        domain=task.domain,
        domain_ref=task.domain_ref,
        split=split_to_proto(task.split),
        level=task.level,
        seed=task.seed,
        messages=[pb.Message(role=role_to_proto(m.role), content=m.content) for m in task.messages],
        tools=[
            pb.ToolSpec(name=t.name, description=t.description, parameters_json=t.parameters_json) for t in task.tools
        ],
        files=[pb.TaskFile(path=f.path, content=f.content) for f in task.files],
        limits=_limits_to_proto(task.limits),
        verification_json=task.verification_json,
        tags=task.tags,
    )


def task_from_proto(message: pb.Task) -> Task:
    """INVALID_INPUT for an unknown split or role."""
    return Task(
        task_id=message.task_id,
        domain=message.domain,
        domain_ref=message.domain_ref,
        split=split_from_proto(message.split),
        level=message.level,
        seed=message.seed,
        messages=tuple(Message(role=role_from_proto(m.role), content=m.content) for m in message.messages),
        tools=tuple(
            ToolSpec(name=t.name, description=t.description, parameters_json=t.parameters_json) for t in message.tools
        ),
        files=tuple(TaskFile(path=f.path, content=f.content) for f in message.files),
        limits=_limits_from_proto(message.limits),
        verification_json=message.verification_json,
        tags=tuple(message.tags),
    )


def _limits_to_proto(limits: Limits) -> pb.Limits:
    return pb.Limits(
        max_turns=limits.max_turns,
        max_turn_tokens=limits.max_turn_tokens,
        max_tokens=limits.max_tokens,
        tool_cpu=seconds_to_duration(limits.tool_cpu_s),
    )


def _limits_from_proto(message: pb.Limits) -> Limits:
    return Limits(
        max_turns=message.max_turns,
        max_turn_tokens=message.max_turn_tokens,
        max_tokens=message.max_tokens,
        tool_cpu_s=seconds_from_duration(message.tool_cpu),
    )


def object_ref_to_proto(ref: ObjectRef) -> pb.ObjectRef:
    """Field by field."""
    return pb.ObjectRef(uri=ref.uri, sha256=ref.sha256, num_bytes=ref.num_bytes)


def object_ref_from_proto(message: pb.ObjectRef) -> ObjectRef:
    """Field by field."""
    return ObjectRef(uri=message.uri, sha256=message.sha256, num_bytes=message.num_bytes)
