"""Real grader processes: they judge, and one that hangs, dies or raises is replaced."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import journeyman
from journeyman.episodes.demonstration import demonstrate
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.load import PATH_VARIABLE, load_pack
from journeyman.packs.port import DomainPack
from journeyman.records import Split
from journeyman.testing.played import played, trajectory_of
from journeyman.trajectories import encode_group
from verifier_service.adapters.graders import Graders
from verifier_service.blame import grade_surely
from verifier_service.core.grading import ClimbState
from verifier_service.ports import GraderLost

TRAP = """

async def trapped(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    if trajectory.response == "die" or (trajectory.response is None and task.level == 3):
        __import__("os")._exit(3)
    if trajectory.response == "hang":
        while True:
            pass
    if trajectory.response == "raise":
        raise ValueError("boo")
    if trajectory.response == "print":
        print("noise")
    if trajectory.response == "eat":
        bytearray(1 << 40)
    return await check_rule(task, trajectory, context)


TIERS = {"format": trapped, "rule": check_rule}
"""


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DomainPack:
    """math.tool with a ladder that some answers upset; at level 3 an empty answer upsets it too."""
    folder = tmp_path / "root" / "mine" / "trap"
    shipped = Path(journeyman.__file__).parent.parent / "domains" / "mathematics" / "math_tool"
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("__pycache__"))
    toml = folder / "domain.toml"
    toml.write_text(toml.read_text().replace("math.tool", "mine.trap"))
    with (folder / "ladder.py").open("a") as ladder:
        ladder.write(TRAP)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "root"))
    return load_pack("mine.trap")


@pytest_asyncio.fixture
async def graders() -> AsyncIterator[Graders]:
    made = Graders(1, timeout_s=1.0, memory_bytes=4 << 30)
    yield made
    await made.close()


def group_of(pack: DomainPack, level: int, responses: list[str]) -> bytes:
    task = next(pack.tasks(Split.TRAIN, level, 0))
    return encode_group([played(task, [], response=text, index=i) for i, text in enumerate(responses)])


async def test_a_group_is_judged_and_alike_members_once(graders: Graders) -> None:
    pack = load_pack("math.tool")
    task = next(pack.tasks(Split.TRAIN, 1, 0))
    members = [trajectory_of(demonstrate(pack, task, seed % 4), index=seed) for seed in range(16)]
    grading = await graders.grade(encode_group(members))
    assert [member.index for member in grading.members] == list(range(16))
    assert len(grading.climbs) <= 4
    assert all(climb.state is ClimbState.DECIDED for climb in grading.climbs)
    assert grading.domain_ref == pack.ref


async def test_domains_with_programs_stop_before_the_box(graders: Graders) -> None:
    pack = load_pack("terminal.shell")
    task = next(pack.tasks(Split.TRAIN, 1, 0))
    members = [trajectory_of(demonstrate(pack, task, seed), index=seed) for seed in range(8)]
    grading = await graders.grade(encode_group(members))
    assert {climb.state for climb in grading.climbs} == {ClimbState.DECIDED, ClimbState.NEEDS_BOX}


async def test_damaged_and_foreign_objects_are_refused(graders: Graders, trap: DomainPack) -> None:
    with pytest.raises(JourneymanError) as caught:
        await graders.grade(b"nothing")
    assert caught.value.code is ErrorCode.CORRUPT
    data = group_of(trap, 1, ["1"])
    folder = next(Path(root) for root in __import__("os").environ[PATH_VARIABLE].split(":")) / "mine" / "trap"
    (folder / "README.md").write_text("changed")
    await graders.close()
    with pytest.raises(JourneymanError) as caught:
        await graders.grade(data)
    assert caught.value.code is ErrorCode.PRECONDITION


@pytest.mark.parametrize(("response", "is_slow"), [("hang", True), ("die", False)])
async def test_a_lost_grader_is_replaced(graders: Graders, trap: DomainPack, response: str, is_slow: bool) -> None:
    await graders.grade(group_of(trap, 1, ["1"]))
    with pytest.raises(GraderLost) as caught:
        await graders.grade(group_of(trap, 1, ["1", response]))
    assert caught.value.has_timed_out == is_slow
    grading = await graders.grade(group_of(trap, 1, ["print"]))
    assert grading.climbs[0].state is ClimbState.DECIDED


@pytest.mark.parametrize("response", ["die", "raise", "eat"])
async def test_an_answer_that_upsets_its_grader_is_wrong(graders: Graders, trap: DomainPack, response: str) -> None:
    grading = await grade_surely(graders, group_of(trap, 1, ["1", response]))
    fine, upset = (grading.climbs[member.climb] for member in grading.members)
    assert fine.results[-1].tier == "rule" or fine.state is ClimbState.DECIDED
    assert (upset.state, upset.results[-1].tier, upset.results[-1].score) == (ClimbState.DECIDED, "grader", 0.0)


async def test_a_grader_that_fails_its_control_gives_no_score(graders: Graders, trap: DomainPack) -> None:
    grading = await grade_surely(graders, group_of(trap, 3, ["die"]))
    assert grading.climbs[0].state is ClimbState.FAILED
