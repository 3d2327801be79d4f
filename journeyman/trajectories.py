"""Trajectories as objects: one Parquet file (zstd) for the members of a group that one worker finished together, one row a rollout.

Written by rollout workers, read by verifier, trainer, registry and people. The run, the group and the task are the same for all rows and
stand once in the file's metadata; token arrays are typed lists, so any Parquet reader can train on them. decode_group gives back exactly
what encode_group was given, as long as log-probabilities are float32 numbers; bytes that are none of this are CORRUPT.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import (
    Attribution,
    Limits,
    Message,
    Role,
    Split,
    Step,
    Task,
    TaskFile,
    ToolCall,
    ToolSpec,
    Trajectory,
)

SCHEMA_VERSION = "1"

_STEP = pa.struct(
    [
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("call_name", pa.string()),
        pa.field("call_arguments_json", pa.string()),
        pa.field("observation", pa.string()),
        pa.field("tool_s", pa.float64(), nullable=False),
    ]
)
_FILE = pa.struct(
    [pa.field("path", pa.string(), nullable=False), pa.field("content", pa.large_binary(), nullable=False)]
)
_SCHEMA = pa.schema(
    [
        pa.field("index", pa.int32(), nullable=False),
        pa.field("attempt", pa.int32(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("token_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("is_sampled", pa.list_(pa.bool_()), nullable=False),
        pa.field("logprobs", pa.list_(pa.float32()), nullable=False),
        pa.field("versions", pa.list_(pa.int64()), nullable=False),
        pa.field("steps", pa.list_(_STEP), nullable=False),
        pa.field("response", pa.string()),
        pa.field("final_files", pa.list_(_FILE), nullable=False),
        pa.field("attribution", pa.string(), nullable=False),
        pa.field("ending", pa.string(), nullable=False),
        pa.field("wall_s", pa.float64(), nullable=False),
    ]
)


def encode_group(trajectories: Sequence[Trajectory]) -> bytes:
    """The file of these members, which share run, group and task. INVALID_INPUT for none, for a mixture and for misaligned arrays."""
    if not trajectories:
        raise JourneymanError(ErrorCode.INVALID_INPUT, "no trajectory to encode; an object holds at least one member")
    first = trajectories[0]
    for member in trajectories:
        if (member.run_id, member.group_id, member.task) != (first.run_id, first.group_id, first.task):
            raise JourneymanError(
                ErrorCode.INVALID_INPUT,
                f"members of {first.group_id} and {member.group_id} in one object; it holds one group's",
            )
        if not _is_aligned(member):
            raise JourneymanError(
                ErrorCode.INVALID_INPUT, f"{member.group_id}/{member.index}: token arrays differ in length"
            )
    metadata = {
        "jm.schema": SCHEMA_VERSION,
        "jm.run_id": first.run_id,
        "jm.group_id": first.group_id,
        "jm.task": json.dumps(task_to_json(first.task), ensure_ascii=True),
    }
    table = pa.Table.from_pylist([_row(member) for member in trajectories], schema=_SCHEMA.with_metadata(metadata))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def decode_group(data: bytes) -> list[Trajectory]:
    """Inverse of encode_group. CORRUPT where the bytes are not such a file, PRECONDITION for a schema of another version."""
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"not a Parquet file of trajectories: {error}") from error
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    version = metadata.get("jm.schema")
    if version is not None and version != SCHEMA_VERSION:
        raise JourneymanError(
            ErrorCode.PRECONDITION, f"trajectory schema {version}; this program reads {SCHEMA_VERSION}"
        )
    try:
        task = task_from_json(json.loads(metadata["jm.task"]))
        run_id, group_id = metadata["jm.run_id"], metadata["jm.group_id"]
        members = [_trajectory(row, run_id, group_id, task) for row in table.to_pylist()]
    except (KeyError, TypeError, ValueError) as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"a trajectory file with wrong content: {error!r}") from error
    if not all(map(_is_aligned, members)):
        raise JourneymanError(ErrorCode.CORRUPT, f"{group_id}: token arrays of a member differ in length")
    return members


def object_key(trajectories: Sequence[Trajectory], data: bytes) -> str:
    """Where encode_group's bytes are stored: trajectories/RUN/GROUP/FIRSTINDEX-ATTEMPT-DIGEST12.parquet."""
    first = min(trajectories, key=lambda member: member.index)
    digest = hashlib.sha256(data).hexdigest()[:12]
    return f"trajectories/{first.run_id}/{first.group_id}/{first.index}-{first.attempt}-{digest}.parquet"


def task_to_json(task: Task) -> dict[str, object]:
    """A JSON document of the task; file contents in base64."""
    return {
        "task_id": task.task_id,
        "domain": task.domain,
        "domain_ref": task.domain_ref,
        "split": task.split.value,
        "level": task.level,
        "seed": task.seed,
        "messages": [{"role": message.role.value, "content": message.content} for message in task.messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters_json": tool.parameters_json}
            for tool in task.tools
        ],
        "files": [
            {"path": file.path, "content_base64": base64.b64encode(file.content).decode()} for file in task.files
        ],
        "limits": {
            "max_turns": task.limits.max_turns,
            "max_turn_tokens": task.limits.max_turn_tokens,
            "max_tokens": task.limits.max_tokens,
            "tool_cpu_s": task.limits.tool_cpu_s,
        },
        "verification_json": task.verification_json,
        "tags": list(task.tags),
    }


def task_from_json(document: Mapping[str, Any]) -> Task:
    """Inverse of task_to_json. KeyError, TypeError or ValueError for anything else."""
    return Task(
        task_id=document["task_id"],
        domain=document["domain"],
        domain_ref=document["domain_ref"],
        split=Split(document["split"]),
        level=document["level"],
        seed=document["seed"],
        messages=tuple(Message(role=Role(item["role"]), content=item["content"]) for item in document["messages"]),
        tools=tuple(ToolSpec(**item) for item in document["tools"]),
        files=tuple(
            TaskFile(path=item["path"], content=base64.b64decode(item["content_base64"], validate=True))
            for item in document["files"]
        ),
        limits=Limits(**document["limits"]),
        verification_json=document["verification_json"],
        tags=tuple(document["tags"]),
    )


def _is_aligned(member: Trajectory) -> bool:
    length = len(member.token_ids)
    return length == len(member.is_sampled) == len(member.logprobs) == len(member.versions)


def _row(member: Trajectory) -> dict[str, object]:
    return {
        "index": member.index,
        "attempt": member.attempt,
        "seed": member.seed,
        "token_ids": member.token_ids,
        "is_sampled": member.is_sampled,
        "logprobs": member.logprobs,
        "versions": member.versions,
        "steps": [
            {
                "start": step.start,
                "end": step.end,
                "text": step.text,
                "call_name": step.call.name if step.call else None,
                "call_arguments_json": step.call.arguments_json if step.call else None,
                "observation": step.observation,
                "tool_s": step.tool_s,
            }
            for step in member.steps
        ],
        "response": member.response,
        "final_files": [{"path": file.path, "content": file.content} for file in member.final_files],
        "attribution": member.attribution.value,
        "ending": member.ending,
        "wall_s": member.wall_s,
    }


def _trajectory(row: Mapping[str, Any], run_id: str, group_id: str, task: Task) -> Trajectory:
    return Trajectory(
        run_id=run_id,
        group_id=group_id,
        index=row["index"],
        attempt=row["attempt"],
        seed=row["seed"],
        task=task,
        token_ids=tuple(row["token_ids"]),
        is_sampled=tuple(row["is_sampled"]),
        logprobs=tuple(row["logprobs"]),
        versions=tuple(row["versions"]),
        steps=tuple(map(_step, row["steps"])),
        response=row["response"],
        final_files=tuple(TaskFile(path=file["path"], content=file["content"]) for file in row["final_files"]),
        attribution=Attribution(row["attribution"]),
        ending=row["ending"],
        wall_s=row["wall_s"],
    )


def _step(row: Mapping[str, Any]) -> Step:
    name, arguments = row["call_name"], row["call_arguments_json"]
    return Step(
        start=row["start"],
        end=row["end"],
        text=row["text"],
        call=None if name is None else ToolCall(name=name, arguments_json=arguments),
        observation=row["observation"],
        tool_s=row["tool_s"],
    )
