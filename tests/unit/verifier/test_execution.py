"""Programs in fresh boxes: the outcome's files over the task's, one box each, and a failing sandbox is waited for, never scored."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from journeyman.boxes.inprocess import InProcessBox
from journeyman.boxes.port import BoxFailure, RunResult
from journeyman.episodes.demonstration import demonstrate
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.load import load_pack
from journeyman.records import Split
from journeyman.testing.played import trajectory_of
from verifier_service.climb import climb
from verifier_service.core.grading import Candidate, ClimbState
from verifier_service.execution import Execution

PACK = load_pack("code.repair")


class FailingBox(InProcessBox):
    """Its sandbox dies while the program runs."""

    async def run_python(
        self, source: str, argv: Sequence[str] = (), *, timeout_s: float = 5.0, cpu_s: float = 2.0
    ) -> RunResult:
        raise BoxFailure("sandbox died")


class FolderBoxes:
    """Gives in-process boxes; the first groups fail as scripted."""

    def __init__(self, root: Path, failures: Sequence[str] = ()) -> None:
        self._root, self._failures, self._numbers = root, list(failures), itertools.count()
        self.opened: list[tuple[str, int]] = []
        self.num_living = 0

    async def open_group(
        self, files: Mapping[str, bytes], count: int, *, key: str, lease_s: float
    ) -> list[InProcessBox]:
        self.opened.append((key, count))
        failure = self._failures.pop(0) if self._failures else ""
        if failure == "unreachable":
            raise JourneymanError(ErrorCode.UNAVAILABLE, "connection refused")
        boxes: list[InProcessBox] = []
        for _ in range(count):
            folder = self._root / str(next(self._numbers))
            folder.mkdir()
            is_failing = failure == "all" or (failure == "first" and not boxes)
            box = FailingBox(folder) if is_failing else InProcessBox(folder)
            await box.write_files(files)
            boxes.append(box)
        self.num_living += count
        return boxes

    async def destroy(self, boxes: Sequence[InProcessBox]) -> None:
        self.num_living -= len(boxes)


async def candidates(count: int) -> dict[int, Candidate]:
    """Distinct members of one task that reached the box tier, half of them right."""
    task = next(PACK.tasks(Split.TRAIN, 2, 0))
    made: dict[int, Candidate] = {}
    for seed in itertools.count():
        trajectory = trajectory_of(await asyncio.to_thread(demonstrate, PACK, task, seed))
        so_far = await climb(PACK, trajectory)
        if so_far.state is ClimbState.NEEDS_BOX:
            made[10 + len(made)] = Candidate(trajectory=trajectory, so_far=so_far)
        if len(made) == count:
            return made
    raise AssertionError


def execution(boxes: FolderBoxes, patience_s: float = 30.0) -> Execution[InProcessBox]:
    return Execution(boxes, patience_s=patience_s, timeout_s=30.0, lease_s=60.0)


async def test_each_gets_a_box_with_its_outcome(tmp_path: Path) -> None:
    boxes, waiting = FolderBoxes(tmp_path), await candidates(6)
    done = await execution(boxes).finish(PACK, waiting, "key")
    assert set(done) == set(waiting)
    for number, finished in done.items():
        ending = waiting[number].trajectory.ending
        assert finished.state is ClimbState.DECIDED
        assert [result.tier for result in finished.results] == ["format", "rule", "execute"]
        assert (finished.results[-1].score == 1.0) == (ending == "solved")
    assert [count for _, count in boxes.opened] == [6]
    assert boxes.num_living == 0


@pytest.mark.parametrize("failures", [["all"], ["unreachable", "all", "unreachable"], ["first"]])
async def test_a_failing_sandbox_is_waited_for(tmp_path: Path, failures: list[str]) -> None:
    boxes, waiting = FolderBoxes(tmp_path, failures), await candidates(3)
    done = await execution(boxes).finish(PACK, waiting, "key")
    assert [finished.state for finished in done.values()] == [ClimbState.DECIDED] * 3
    assert len(boxes.opened) == len(failures) + 1
    assert boxes.opened[-1][1] == (1 if failures == ["first"] else 3)
    assert len({key for key, _ in boxes.opened}) == len(boxes.opened)
    assert boxes.num_living == 0


async def test_a_group_judged_again_gets_new_boxes(tmp_path: Path) -> None:
    boxes, waiting = FolderBoxes(tmp_path), await candidates(1)
    for _ in range(2):
        await execution(boxes).finish(PACK, waiting, "key")
    assert boxes.opened[0][0] != boxes.opened[1][0]


@pytest.mark.parametrize("failure", ["unreachable", "all"])
async def test_a_sandbox_that_stays_away_is_no_score(tmp_path: Path, failure: str) -> None:
    boxes, waiting = FolderBoxes(tmp_path, [failure] * 99), await candidates(2)
    done = await execution(boxes, patience_s=0.3).finish(PACK, waiting, "key")
    assert [finished.state for finished in done.values()] == [ClimbState.FAILED] * 2
    assert all(finished.reason.startswith("sandbox: ") for finished in done.values())
    assert boxes.num_living == 0
