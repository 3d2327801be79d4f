"""Recording is idempotent, and the board of policies never goes back."""

from journeyman.bus.envelope import parse
from journeyman.bus.memory import MemoryBus
from journeyman.objects.folder import FolderObjects
from journeyman.packs.load import load_pack
from journeyman.records import Attribution, LatestPolicy, PolicyRef, PolicyVersion, Split
from rollout_service.adapters.recorder import ObjectRecorder
from rollout_service.consumer import PolicyBoard
from rollout_service.core.records import Failed, GroupLease, Member, Played
from rollout_service.core.transcript import Transcript
from rollout_service.core.turns import FinishedTurn, Stop


def lease_of_two() -> GroupLease:
    return GroupLease(
        group_id="g1",
        run_id="run",
        task=next(load_pack("math.tool").tasks(Split.TRAIN, 1, 0)),
        policy=LatestPolicy(run_id="run"),
        members=(Member(index=0, attempt=1, seed=5), Member(index=1, attempt=3, seed=6)),
        life_s=10.0,
        temperature=1.0,
    )


def played(lease: GroupLease) -> Played:
    versions = [PolicyVersion(incarnation=2, step=step).pack() for step in (4, 3, 3)]
    transcript = Transcript([1, 9, 5, 2])
    transcript.add_turn(FinishedTurn(ids=[7, 8, 5], logprobs=[-0.5, -1.0, -0.25], versions=versions, stop=Stop.END))
    transcript.describe_turn(3, text="ab", call=None, observation=None, tool_s=0.0)
    return Played(
        trajectory=transcript.trajectory(
            lease,
            lease.members[0],
            response="ab",
            final_files=(),
            attribution=Attribution.POLICY,
            ending="answered",
            wall_s=0.5,
        )
    )


async def test_recording_again_repeats_object_and_fact(tmp_path) -> None:
    bus, objects, lease = MemoryBus(), FolderObjects(tmp_path), lease_of_two()
    recorder = ObjectRecorder(objects, bus, "worker")
    failed = Failed(member=lease.members[1], attribution=Attribution.SANDBOX, detail="sandbox: gone")
    await recorder.record(lease, [failed, played(lease)])
    await recorder.record(lease, [played(lease), failed])
    consumer = await bus.consumer("test", ["trajectory.recorded"])
    first, second = [parse(record.value) for record in await consumer.poll(10, 1.0)]
    assert first.event_id == second.event_id
    assert first.trajectory_recorded == second.trajectory_recorded
    assert len(await objects.list("trajectories/run/g1")) == 1
    completed, not_completed = first.trajectory_recorded.members
    assert (completed.index, completed.attempt, completed.oldest_version.step) == (0, 1, 3)
    assert (not_completed.index, not_completed.attempt, not_completed.completed) == (1, 3, False)
    assert not not_completed.HasField("oldest_version")


async def test_the_board_keeps_the_highest_version_of_each_run() -> None:
    def ref(run_id: str, incarnation: int, step: int) -> PolicyRef:
        version = PolicyVersion(incarnation=incarnation, step=step)
        return PolicyRef(run_id=run_id, version=version, uri="u", manifest_sha256="m")

    board = PolicyBoard()
    assert board.newest("a") is None
    for incarnation, step in ((0, 1), (0, 5), (1, 3), (0, 9)):
        board.put(ref("a", incarnation, step))
    board.put(ref("b", 0, 2))
    assert board.newest("a") == ref("a", 1, 3)
    assert board.newest("b") == ref("b", 0, 2)
