"""The RL job against a scripted scheduler and worker on the memory bus: order of effects, kills, redelivery, age."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from jm.events.v1 import events_pb2 as ev

from journeyman.artefacts import MadeHow, read_policy, write_policy
from journeyman.bus.envelope import event_id, outgoing, parse, wrap
from journeyman.bus.memory import MemoryBus
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.convert import object_ref_to_proto, policy_ref_from_proto
from journeyman.errors import JourneymanError
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.objects.folder import FolderObjects
from journeyman.packs.load import load_pack
from journeyman.records import Attribution, PolicyRef, PolicyVersion, Split, Trajectory
from journeyman.trajectories import encode_group, object_key
from trainer_service.adapters.bus import BusFacts, BusGroups
from trainer_service.adapters.job_store import ObjectJobStore
from trainer_service.adapters.recorded import ObjectTrajectories
from trainer_service.cold_start import Halt
from trainer_service.core.records import RlSpec
from trainer_service.learner import ComputeThread
from trainer_service.reinforce import Reinforcement

RUN = "run"
TASK = next(load_pack("math.tool").tasks(Split.TRAIN, 1, 0))
CONFIG = ModelConfig(
    vocab_size=300, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
    num_key_value_heads=1, head_dim=8, max_position_embeddings=64,
)  # fmt: skip


class Killed(Exception):
    """Stands for kill -9: nothing after it runs."""


@dataclass
class World:
    """What outlives a trainer: bus and objects."""

    objects: FolderObjects
    base: PolicyRef
    bus: MemoryBus = field(default_factory=MemoryBus)

    async def offer(self, number: int, *, step: int = 0, max_off_policy_steps: int = 9) -> str:
        """Publishes a ready group of two rollouts sampled by weights of that step."""
        group_id = f"{RUN}/g{number:03d}"
        members = [trajectory(group_id, index, step) for index in range(2)]
        data = encode_group(members)
        ref = await self.objects.put(object_key(members, data), data)
        ready = ev.GroupReady(
            group_id=group_id,
            domain="math.tool",
            level=1,
            max_off_policy_steps=max_off_policy_steps,
            members=[
                ev.ReadyMember(index=i, attempt=1, object=object_ref_to_proto(ref), reward=float(i), passed=bool(i))
                for i in range(2)
            ],
        )
        await self.bus.publish([outgoing(wrap(ready, event_id=event_id(group_id), run_id=RUN), group_id)])
        return group_id

    def facts(self, topic: str) -> list[ev.Envelope]:
        return [parse(record.value) for (name, _), log in self.bus.logs.items() if name == topic for record in log]

    async def train(
        self,
        num_steps: int,
        *,
        checkpoint_every: int = 1,
        kill_at: int | None = None,
        kill_when_idle: bool = False,
        halt: Halt = Halt.STOP,
    ) -> PolicyRef:
        """One life of the trainer."""
        job = Reinforcement(
            "rl",
            RlSpec(
                base=self.base,
                run_id=RUN,
                num_steps=num_steps,
                groups_per_step=2,
                min_groups=1,
                max_wait_s=0.2,
                learning_rate=1e-2,
                checkpoint_every=checkpoint_every,
                seed=0,
            ),
            objects=self.objects,
            store=ObjectJobStore(self.objects),
            facts=BusFacts(self.bus),
            groups=BusGroups(self.bus, "rl"),
            trajectories=ObjectTrajectories(self.objects),
        )
        empty_looks = 0

        async def progress(step: int, figures: Mapping[str, float]) -> Halt | None:
            nonlocal empty_looks
            if kill_at is not None and step == kill_at and figures:
                raise Killed
            empty_looks = 0 if figures else empty_looks + 1
            if kill_when_idle and empty_looks > 5:
                raise Killed
            return halt if empty_looks > 20 else None  # nothing more is coming

        compute = ComputeThread()
        try:
            return await job.run(compute, 1, progress)
        finally:
            compute.close()
            self.bus.members.clear()  # the dead leave their consumer group


def trajectory(group_id: str, index: int, step: int) -> Trajectory:
    sampled = (False, False, True, True, False, True)
    version = PolicyVersion(incarnation=0, step=step).pack()
    return Trajectory(
        run_id=RUN,
        group_id=group_id,
        index=index,
        attempt=1,
        seed=index,
        task=TASK,
        token_ids=(1, 50 + index, 60, 5, 2, 70 + index),
        is_sampled=sampled,
        logprobs=tuple(-5.6 if s else 0.0 for s in sampled),
        versions=tuple(version if s else -1 for s in sampled),
        steps=(),
        response="x",
        final_files=(),
        attribution=Attribution.POLICY,
        ending="answered",
        wall_s=0.1,
    )


@pytest.fixture
async def world(tmp_path: Path) -> World:
    objects = FolderObjects(tmp_path)
    tokenizer = ChatTokenizer.train(["12 + 30 calc answer"], 290)
    base = await write_policy(
        objects,
        run_id="sft",
        version=PolicyVersion(incarnation=0, step=0),
        model=initialise(Qwen3(CONFIG), 0),
        tokenizer=tokenizer,
        made_how=MadeHow(stage="sft"),
    )
    return World(objects=objects, base=base)


def committed(world: World) -> dict[str, set[str]]:
    """Group -> versions that it was said to be committed into."""
    found: dict[str, set[str]] = {}
    for envelope in world.facts("group.committed"):
        fact = envelope.group_committed
        found.setdefault(fact.group_id, set()).add(f"{fact.version.incarnation}.{fact.version.step}")
    return found


async def test_groups_are_taken_trained_and_committed_and_weights_are_published_each_step(world: World) -> None:
    groups = [await world.offer(number) for number in range(4)]
    ref = await world.train(2)
    assert str(ref.version) == "0.2"
    assert sorted(committed(world)) == groups
    assert {e.group_taken.group_id for e in world.facts("group.taken")} == set(groups)
    published = [e.policy_published.policy.version.step for e in world.facts("policy.published")]
    assert published == [0, 1, 2]
    loaded = await read_policy(world.objects, ref)
    assert loaded.manifest.made_how.metrics["groups"] == 2


async def test_a_repeated_fact_is_not_trained_twice(world: World) -> None:
    for number in (0, 1, 0, 1, 2):
        await world.offer(number)
    await world.train(5)
    taken = [e.group_taken.group_id for e in world.facts("group.taken")]
    assert len(taken) == len(set(taken)) == 3


@pytest.mark.parametrize("checkpoint_every", [1, 2, 3])
@pytest.mark.parametrize("kill_at", [1, 2, 3])
async def test_kill_and_resume_gives_the_weights_of_an_undisturbed_run(
    world: World, tmp_path: Path, checkpoint_every: int, kill_at: int
) -> None:
    groups = [await world.offer(number) for number in range(8)]
    with pytest.raises(Killed):
        await world.train(4, checkpoint_every=checkpoint_every, kill_at=kill_at)
    resumed = await read_policy(world.objects, await world.train(4, checkpoint_every=checkpoint_every))
    assert str(resumed.ref.version) == "1.4"
    assert sorted(committed(world)) == groups

    calm = World(objects=FolderObjects(tmp_path / "calm"), base=world.base)
    for key in await world.objects.list(world.base.uri):
        await calm.objects.put(key, await world.objects.get(key))
    for number in range(8):
        await calm.offer(number)
    expected = await read_policy(calm.objects, await calm.train(4, checkpoint_every=checkpoint_every))
    for name, tensor in expected.weights.items():
        torch.testing.assert_close(resumed.weights[name], tensor, rtol=0, atol=0)


async def test_too_old_a_group_is_dropped_not_trained(world: World) -> None:
    for number in range(2):
        await world.offer(number)
    old = [await world.offer(number, step=0, max_off_policy_steps=0) for number in (2, 3)]
    fresh = [await world.offer(number, step=1, max_off_policy_steps=0) for number in (4, 5)]
    await world.train(2)
    dropped = [e.group_dropped for e in world.facts("group.dropped")]
    assert sorted(fact.group_id for fact in dropped) == old
    assert {fact.reason for fact in dropped} == {ev.DropReason.DROP_REASON_STALE}
    assert set(committed(world)) == {f"{RUN}/g000", f"{RUN}/g001", *fresh}


async def test_a_drop_is_told_at_once_and_outlives_a_crash(world: World) -> None:
    """Its admission slot must not wait for a checkpoint; and after the crash, at an earlier step, the group would be young enough again."""
    for number in range(2):
        await world.offer(number)
    old = [await world.offer(number, step=0, max_off_policy_steps=0) for number in (2, 3)]
    with pytest.raises(Killed):
        await world.train(3, checkpoint_every=9, kill_when_idle=True)
    assert not committed(world)
    assert sorted(e.group_dropped.group_id for e in world.facts("group.dropped")) == old
    await world.train(3, checkpoint_every=9)
    assert not {e.group_taken.group_id for e in world.facts("group.taken")} & set(old)
    assert sorted(committed(world)) == [f"{RUN}/g000", f"{RUN}/g001"]


async def test_no_two_lives_give_one_name_to_different_weights(world: World) -> None:
    """Two crashes in a row before any checkpoint: the third life still has a number of its own."""
    for number in range(8):
        await world.offer(number)
    for kill_at in (2, 1):
        with pytest.raises(Killed):
            await world.train(4, checkpoint_every=9, kill_at=kill_at)
    ref = await world.train(4, checkpoint_every=9)
    assert str(ref.version) == "2.4"
    digests: dict[str, set[str]] = {}
    for envelope in world.facts("policy.published"):
        policy = envelope.policy_published.policy
        digests.setdefault(policy.uri, set()).add(policy.manifest_sha256)
    assert all(len(found) == 1 for found in digests.values())
    for envelope in world.facts("policy.published"):
        await read_policy(world.objects, policy_ref_from_proto(envelope.policy_published.policy))


async def test_a_checkpoint_that_changed_is_refused(world: World) -> None:
    for number in range(2):
        await world.offer(number)
    await world.train(1)
    for key in await world.objects.list("checkpoints/rl/tensors-"):
        await world.objects.put(key, b"other bytes")
    with pytest.raises(JourneymanError, match="digest"):
        await world.train(2)


async def test_what_a_lost_step_had_taken_is_let_go_when_the_job_ends_before_training_it(world: World) -> None:
    groups = [await world.offer(number) for number in range(6)]
    with contextlib.suppress(Killed):
        await world.train(3, checkpoint_every=9, kill_at=2)
    await world.train(0)
    assert not committed(world)
    dropped = {e.group_dropped.group_id: e.group_dropped.reason for e in world.facts("group.dropped")}
    assert dropped == dict.fromkeys(groups, ev.DropReason.DROP_REASON_CANCELLED)


async def test_a_paused_job_keeps_its_groups_for_its_next_life(world: World) -> None:
    groups = [await world.offer(number) for number in range(3)]
    await world.train(3, halt=Halt.PAUSE)
    groups.append(await world.offer(3))
    await world.train(3)
    assert not world.facts("group.dropped")
    assert sorted(committed(world)) == groups


async def test_facts_of_the_checkpoint_are_said_again_after_a_crash(world: World) -> None:
    """The crash may have come between the checkpoint and its facts."""
    for number in range(4):
        await world.offer(number)
    with contextlib.suppress(Killed):
        await world.train(2, kill_at=2)
    for (topic, _), log in world.bus.logs.items():
        if topic != "group.ready":
            log.clear()
    await world.train(2)
    assert sorted(committed(world)) == [f"{RUN}/g{number:03d}" for number in range(4)]


async def test_a_corrupt_object_ends_the_job_and_names_it(world: World) -> None:
    await world.offer(0)
    key = next(key for key in await world.objects.list("trajectories/"))
    await world.objects.put(key, b"not parquet")
    with pytest.raises(Exception, match="digest"):
        await asyncio.wait_for(world.train(1), 10)
