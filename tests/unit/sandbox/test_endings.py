"""Endings explained from facts."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.boxes.port import Ending
from sandbox_service.core.endings import RunFacts, explain

NOTHING = {"exit_code": 0, "signal": 0, "killed_for": "", "note": 0, "is_full": False, "truncated": False}


def facts(**changes: object) -> RunFacts:
    return RunFacts(**(NOTHING | changes))  # type: ignore[arg-type]  # the names say the types


@pytest.mark.parametrize(
    ("seen", "ending"),
    [
        ({}, Ending.EXITED),
        ({"exit_code": 1}, Ending.EXITED),
        ({"signal": signal.SIGSEGV}, Ending.SIGNALLED),
        ({"signal": 9, "killed_for": "wall"}, Ending.WALL_TIMEOUT),
        ({"signal": 9, "killed_for": "cpu"}, Ending.CPU_TIMEOUT),
        ({"signal": signal.SIGXCPU}, Ending.CPU_TIMEOUT),
        ({"signal": signal.SIGXFSZ}, Ending.DISK_FULL),
        ({"exit_code": 1, "note": 1}, Ending.OUT_OF_MEMORY),
        ({"exit_code": 1, "note": 2}, Ending.DISK_FULL),
        ({"exit_code": 1, "note": 3}, Ending.TOO_MANY_PROCESSES),
        ({"exit_code": 1, "note": 77}, Ending.EXITED),
        ({"exit_code": 1, "is_full": True}, Ending.DISK_FULL),
        ({"is_full": True, "note": 1}, Ending.EXITED),
        ({"signal": 9, "num_oom_kills": 1}, Ending.OUT_OF_MEMORY),
        ({"signal": 9, "killed_for": "wall", "num_fork_refusals": 3}, Ending.TOO_MANY_PROCESSES),
        ({"truncated": True}, Ending.OUTPUT_LIMIT),
        ({"signal": 9, "killed_for": "output"}, Ending.OUTPUT_LIMIT),
    ],
)
def test_each_ending_has_its_facts(seen: dict[str, object], ending: Ending) -> None:
    assert explain(facts(**seen)) is ending


@given(
    st.builds(
        RunFacts,
        exit_code=st.integers(0, 255),
        signal=st.integers(0, 64),
        killed_for=st.sampled_from(["", "wall", "cpu", "output"]),
        note=st.integers(0, 255),
        is_full=st.booleans(),
        truncated=st.booleans(),
        num_oom_kills=st.integers(0, 3),
        num_fork_refusals=st.integers(0, 3),
    )
)
def test_nothing_a_program_does_is_our_failure(seen: RunFacts) -> None:
    assert explain(seen) not in (Ending.INFRA_ERROR, Ending.KILLED_BY_CALLER)
