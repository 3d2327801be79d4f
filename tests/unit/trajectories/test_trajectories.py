"""Trajectory files give back exactly what was put in, and refuse what they are not."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from journeyman.trajectories import decode_group, encode_group, object_key

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
word = st.text("abcdefghij0123456789-_.", min_size=1, max_size=12)
int64 = st.integers(-(2**63), 2**63 - 1)
seconds = st.floats(0, 1e6, allow_nan=False)
files = st.lists(st.builds(TaskFile, path=word, content=st.binary(max_size=50)), max_size=3).map(tuple)
calls = st.builds(ToolCall, name=word, arguments_json=text)
tasks = st.builds(
    Task,
    task_id=text,
    domain=word,
    domain_ref=text,
    split=st.sampled_from(Split),
    level=st.integers(1, 9),
    seed=int64,
    messages=st.lists(st.builds(Message, role=st.sampled_from(Role), content=text), max_size=3).map(tuple),
    tools=st.lists(st.builds(ToolSpec, name=word, description=text, parameters_json=text), max_size=3).map(tuple),
    files=files,
    limits=st.builds(
        Limits,
        max_turns=st.integers(1, 99),
        max_turn_tokens=st.integers(1, 9999),
        max_tokens=st.integers(1, 99999),
        tool_cpu_s=seconds,
    ),
    verification_json=text,
    tags=st.lists(text, max_size=3).map(tuple),
)
steps = st.builds(
    Step,
    start=st.integers(0, 2**31 - 1),
    end=st.integers(0, 2**31 - 1),
    text=text,
    call=st.none() | calls,
    observation=st.none() | text,
    tool_s=seconds,
)
tokens = st.lists(
    st.tuples(
        st.integers(0, 2**31 - 1),
        st.booleans(),
        st.floats(-100, 0, width=32),
        st.integers(-1, 2**63 - 1),
    ),
    max_size=30,
)


@st.composite
def groups(draw: st.DrawFn) -> list[Trajectory]:
    run_id, group_id, task = draw(word), draw(word), draw(tasks)
    members = []
    for index in range(draw(st.integers(1, 4))):
        rows = draw(tokens)
        ids, sampled, logprobs, versions = (tuple(column) for column in zip(*rows, strict=True)) if rows else ((),) * 4
        members.append(
            Trajectory(
                run_id=run_id,
                group_id=group_id,
                index=index,
                attempt=draw(st.integers(1, 9)),
                seed=draw(int64),
                task=task,
                token_ids=ids,
                is_sampled=sampled,
                logprobs=logprobs,
                versions=versions,
                steps=tuple(draw(st.lists(steps, max_size=3))),
                response=draw(st.none() | text),
                final_files=draw(files),
                attribution=draw(st.sampled_from([Attribution.POLICY, Attribution.BUDGET])),
                ending=draw(word),
                wall_s=draw(seconds),
            )
        )
    return members


@settings(max_examples=60, deadline=None)
@given(groups())
def test_round_trip_is_exact(group: list[Trajectory]) -> None:
    data = encode_group(group)
    assert decode_group(data) == group
    assert encode_group(group) == data


@settings(max_examples=20, deadline=None)
@given(groups())
def test_key_names_run_group_first_member_and_content(group: list[Trajectory]) -> None:
    data = encode_group(group)
    first = group[0]
    key = object_key(list(reversed(group)), data)
    assert key.startswith(f"trajectories/{first.run_id}/{first.group_id}/0-{first.attempt}-")
    assert key.endswith(".parquet")
    assert key != object_key(group, data + b"x")


def member(**changes: object) -> Trajectory:
    values: dict[str, object] = {
        "run_id": "run",
        "group_id": "group",
        "index": 0,
        "attempt": 1,
        "seed": 1,
        "task": Task(
            task_id="t",
            domain="d",
            domain_ref="d@1+0",
            split=Split.TRAIN,
            level=1,
            seed=0,
            messages=(),
            tools=(),
            files=(),
            limits=Limits(max_turns=1, max_turn_tokens=1, max_tokens=1, tool_cpu_s=1.0),
            verification_json="{}",
        ),
        "token_ids": (1, 2),
        "is_sampled": (False, True),
        "logprobs": (0.0, -0.5),
        "versions": (-1, 3),
        "steps": (),
        "response": None,
        "final_files": (),
        "attribution": Attribution.POLICY,
        "ending": "answered",
        "wall_s": 0.1,
    }
    return Trajectory(**(values | changes))  # type: ignore[arg-type]  # a table of fields


@pytest.mark.parametrize(
    "group",
    [
        [],
        [member(), member(index=1, group_id="other")],
        [member(logprobs=(0.0,))],
    ],
)
def test_what_is_no_group_is_refused(group: list[Trajectory]) -> None:
    with pytest.raises(JourneymanError) as caught:
        encode_group(group)
    assert caught.value.code is ErrorCode.INVALID_INPUT


def test_broken_bytes_are_corrupt() -> None:
    data = encode_group([member()])
    for broken in (b"", b"PAR1", data[:-20], data[: len(data) // 2]):
        with pytest.raises(JourneymanError) as caught:
            decode_group(broken)
        assert caught.value.code is ErrorCode.CORRUPT


def test_another_parquet_file_is_corrupt() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink)
    with pytest.raises(JourneymanError) as caught:
        decode_group(sink.getvalue().to_pybytes())
    assert caught.value.code is ErrorCode.CORRUPT


def test_a_later_schema_is_said_so() -> None:
    table = pq.read_table(pa.BufferReader(encode_group([member()])))
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"jm.schema": b"2"}), sink)
    with pytest.raises(JourneymanError) as caught:
        decode_group(sink.getvalue().to_pybytes())
    assert caught.value.code is ErrorCode.PRECONDITION


def test_readers_see_typed_columns() -> None:
    table = pq.read_table(pa.BufferReader(encode_group([member()])))
    assert str(table.schema.field("token_ids").type) == "list<element: int32>"
    assert str(table.schema.field("versions").type) == "list<element: int64>"
    assert table.column("logprobs").to_pylist() == [[0.0, -0.5]]
    assert math.isclose(table.column("wall_s").to_pylist()[0], 0.1)
