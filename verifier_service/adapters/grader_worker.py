"""The grader process: reads questions about a recorded object on standard input, answers on standard output, dies with its parent.

Started by adapters.graders only. It exists to be killed: whatever an answer does to a ladder happens here. See
adapters.questions for what passes.
"""

import ctypes
import os
import pickle
import resource
import signal
import sys
from typing import BinaryIO

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.load import load_pack
from journeyman.packs.port import DomainPack
from journeyman.records import Trajectory
from journeyman.trajectories import decode_group
from verifier_service.adapters.questions import LENGTH, Answer, Question, Refusal
from verifier_service.climb import climb
from verifier_service.core.alike import number_alike
from verifier_service.core.grading import Climb, Grading, Member

_PR_SET_PDEATHSIG = 1


def answer(question: Question) -> Answer:
    """Grading for a whole object, Climb for one member or the control."""
    try:
        trajectories = decode_group(question.data)
        pack = pack_of(trajectories)
    except JourneymanError as error:
        return Refusal(code=error.code, message=error.message)
    if question.is_control:
        return _climb(pack, blank(trajectories[0]))
    if question.only is not None:
        return _climb(pack, trajectories[question.only])
    return _grade(pack, trajectories, is_reading=question.is_reading)


def pack_of(trajectories: list[Trajectory]) -> DomainPack:
    """The pack that made the task. PRECONDITION where this machine holds another one."""
    task = trajectories[0].task
    pack = load_pack(task.domain)
    if pack.ref != task.domain_ref:
        raise JourneymanError(
            ErrorCode.PRECONDITION, f"task {task.task_id} was made by {task.domain_ref}, this verifier holds {pack.ref}"
        )
    return pack


def blank(trajectory: Trajectory) -> Trajectory:
    """The same task with nothing done."""
    return Trajectory(
        run_id=trajectory.run_id,
        group_id=trajectory.group_id,
        index=trajectory.index,
        attempt=trajectory.attempt,
        seed=trajectory.seed,
        task=trajectory.task,
        token_ids=(),
        is_sampled=(),
        logprobs=(),
        versions=(),
        steps=(),
        response=None,
        final_files=(),
        attribution=trajectory.attribution,
        ending="turns_spent",
        wall_s=0.0,
    )


def _grade(pack: DomainPack, trajectories: list[Trajectory], *, is_reading: bool) -> Grading:
    kinds, firsts = number_alike(trajectories)
    members = tuple(
        Member(
            index=trajectory.index,
            attempt=trajectory.attempt,
            attribution=trajectory.attribution,
            num_turns=len(trajectory.steps),
            num_sampled_tokens=trajectory.num_sampled,
            climb=kind,
        )
        for trajectory, kind in zip(trajectories, kinds, strict=True)
    )
    climbs = () if is_reading else tuple(_climb(pack, trajectories[place]) for place in firsts)
    return Grading(domain=pack.spec.name, domain_ref=pack.ref, members=members, positions=tuple(firsts), climbs=climbs)


def _climb(pack: DomainPack, trajectory: Trajectory) -> Climb:
    """Drives the coroutine by hand: without a box, no tier has anything to wait for."""
    coroutine = climb(pack, trajectory)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: Climb = stop.value
        return result
    coroutine.close()
    raise RuntimeError(f"{pack.spec.name}: a tier without a box waited for something")


def read_frame(stream: BinaryIO) -> bytes | None:
    """None at the end of the stream."""
    head = stream.read(LENGTH.size)
    return stream.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


def main(memory_bytes: int) -> None:
    """Answers until the parent is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service decides when to stop, not the terminal
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a pack prints must not look like an answer
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        reply = pickle.dumps(answer(pickle.loads(frame)))
        replies.write(LENGTH.pack(len(reply)) + reply)
        replies.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
