"""The verifier behind its bus edge: facts follow from objects alone, redelivery repeats them, infrastructure never scores."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from jm.common.v1 import common_pb2 as common
from jm.events.v1 import events_pb2 as events

from journeyman.bus.envelope import parse, wrap
from journeyman.bus.memory import MemoryBus
from journeyman.bus.port import Record
from journeyman.convert import object_ref_to_proto
from journeyman.episodes.demonstration import demonstrate
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.folder import FolderObjects
from journeyman.packs.load import load_pack
from journeyman.records import ObjectRef, Split
from journeyman.testing.played import trajectory_of
from journeyman.topics import TRAJECTORY_VERIFIED
from journeyman.trajectories import encode_group, object_key
from verifier_service.adapters.graders import Graders
from verifier_service.app import Verifier
from verifier_service.consumer import RecordedConsumer


@dataclass
class House:
    """A verifier without a sandbox, and what is around it."""

    app: Verifier
    bus: MemoryBus
    objects: FolderObjects

    async def record(self, domain: str, count: int = 4) -> events.Envelope:
        """Stores a group and gives the fact that says so."""
        pack = load_pack(domain)
        task = next(pack.tasks(Split.TRAIN, 1, 0))
        group = f"group-{domain}"
        members = [trajectory_of(demonstrate(pack, task, seed), group_id=group, index=seed) for seed in range(count)]
        data = encode_group(members)
        ref = await self.objects.put(object_key(members, data), data)
        recorded = [
            events.RecordedMember(index=m.index, attempt=1, completed=True, num_turns=1, num_sampled_tokens=2)
            for m in members
        ]
        fact = events.TrajectoryRecorded(group_id=group, object=object_ref_to_proto(ref), members=recorded)
        return wrap(fact, event_id=f"recorded-{domain}", run_id="run")

    async def deliver(self, *envelopes: events.Envelope) -> list[events.Envelope]:
        """What is on trajectory.verified after the consumer got these."""
        nowhere = Record(topic="", partition=0, offset=0, key="", value=b"", headers={}, timestamp_ms=0)
        await RecordedConsumer(self.app, self.bus).handle([(envelope, nowhere) for envelope in envelopes])
        consumer = await self.bus.consumer("test", [TRAJECTORY_VERIFIED.name])
        found = [parse(record.value) for record in await consumer.poll(99, 0.1)]
        await consumer.close()
        return found


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    objects, graders = FolderObjects(tmp_path / "objects"), Graders(1, timeout_s=10.0, memory_bytes=4 << 30)
    yield House(app=Verifier(objects, graders, None), bus=MemoryBus(), objects=objects)
    await graders.close()


async def test_a_recorded_group_is_verified_once_and_repeated_for_ever(house: House) -> None:
    recorded = await house.record("math.tool")
    first, second = await house.deliver(recorded, recorded)
    assert first.event_id == second.event_id
    assert first.trajectory_verified == second.trajectory_verified
    verified = first.trajectory_verified
    assert [verdict.index for verdict in verified.verdicts] == [0, 1, 2, 3]
    assert all(verdict.status == events.VERDICT_STATUS_GRADED for verdict in verified.verdicts)
    assert all(verdict.object == recorded.trajectory_recorded.object for verdict in verified.verdicts)
    assert (first.run_id, first.causation_id) == ("run", recorded.event_id)
    assert load_pack("math.tool").ref in verified.verifier_ref


async def test_a_stored_verdict_needs_no_grader(house: House, tmp_path: Path) -> None:
    recorded = await house.record("math.tool")
    await house.deliver(recorded)

    class NoGrader:
        """Would fail every question."""

    again = House(app=Verifier(house.objects, NoGrader(), None), bus=MemoryBus(), objects=house.objects)  # type: ignore[arg-type]  # must not be asked
    assert len(await again.deliver(recorded)) == 1


async def test_records_without_an_object_are_skipped(house: House) -> None:
    fact = events.TrajectoryRecorded(group_id="g", members=[events.RecordedMember(index=0, attempt=1)])
    assert await house.deliver(wrap(fact, event_id="e")) == []


async def test_without_a_sandbox_programs_are_not_scored(house: House) -> None:
    code, sums = await house.record("code.repair", 8), await house.record("math.tool")
    found = {envelope.trajectory_verified.group_id: envelope for envelope in await house.deliver(code, sums)}
    unscored = found["group-code.repair"].trajectory_verified.verdicts
    assert [verdict.status for verdict in unscored] == [events.VERDICT_STATUS_VERIFIER_ERROR] * 8
    assert all(verdict.attribution == common.ATTRIBUTION_VERIFIER for verdict in unscored)
    scored = found["group-math.tool"].trajectory_verified.verdicts
    assert [verdict.status for verdict in scored] == [events.VERDICT_STATUS_GRADED] * 4
    assert not any("code.repair" in key for key in await house.objects.list("verdicts"))


async def test_a_damaged_object_gives_verdicts_that_say_so(house: House) -> None:
    recorded = await house.record("math.tool")
    await house.objects.put(recorded.trajectory_recorded.object.uri, b"other bytes")
    (envelope,) = await house.deliver(recorded)
    verdicts = envelope.trajectory_verified.verdicts
    assert [verdict.status for verdict in verdicts] == [events.VERDICT_STATUS_VERIFIER_ERROR] * 4
    assert "corrupt" in verdicts[0].reason


async def test_a_missing_object_is_not_found(house: House) -> None:
    with pytest.raises(JourneymanError) as caught:
        await house.app.verify("g", ObjectRef(uri="trajectories/none", sha256="0" * 64, num_bytes=1))
    assert caught.value.code is ErrorCode.NOT_FOUND
