"""The worker around the scripted engine and a fake scheduler: what is recorded, given back, lost and drained."""

import asyncio
import time
from dataclasses import replace
from itertools import pairwise

import pytest
from jm.common.v1 import common_pb2 as common

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import LatestPolicy, Trajectory
from rollout_service.ports import EngineFailure, PolicyRefused

LATEST = LatestPolicy(run_id="run")
DOMAINS = (
    "math.tool",
    "documents.figure",
    "geometry.mesh",
    "longcontext.retrieval",
    "code.repair",
    "terminal.shell",
)


def check_alignment(trajectory: Trajectory, tokenizer) -> None:
    """Prompt, turns and observations concatenated are the tokens; what is sampled has a version and only that."""
    prompt = tokenizer.encode_prompt(trajectory.task.messages)
    ids, sampled = list(prompt), [False] * len(prompt)
    for step, following in pairwise([*trajectory.steps, None]):
        assert step.start == len(ids)
        ids += trajectory.token_ids[step.start : step.end]
        sampled += [True] * (step.end - step.start)
        if step.observation is not None:
            seen = tokenizer.encode_observation(step.observation)
            ids += seen
            sampled += [False] * len(seen)
        assert (step.observation is None) == (following is None)
        assert tokenizer.decode(trajectory.token_ids[step.start : step.end]).removesuffix("<|end|>") == step.text
    assert tuple(ids) == trajectory.token_ids
    assert tuple(sampled) == trajectory.is_sampled
    for is_sampled, version, logprob in zip(
        trajectory.is_sampled, trajectory.versions, trajectory.logprobs, strict=True
    ):
        assert is_sampled == (version >= 0)
        assert is_sampled or logprob == 0.0


@pytest.mark.parametrize("domain", DOMAINS)
async def test_a_group_becomes_one_object_and_one_fact(tmp_path, stage_of, task_of, domain) -> None:
    async with stage_of(tmp_path) as stage:
        policy = await stage.publish(3)
        task = task_of(domain)
        stage.scheduler.add(task, LATEST, group_id="g1", size=6)
        (fact,) = await stage.recorded()
        assert [member.index for member in fact.members] == list(range(6))
        assert all(member.completed for member in fact.members)
        assert {member.oldest_version.step for member in fact.members} == {3}
        assert fact.object.uri.startswith("trajectories/run/g1/0-1-")
        trajectories = await stage.trajectories(fact)
        assert {trajectory.seed for trajectory in trajectories} == set(range(6))
        for trajectory, member in zip(trajectories, fact.members, strict=True):
            check_alignment(trajectory, stage.tokenizer)
            assert trajectory.task == task
            assert member.num_turns == len(trajectory.steps)
            assert member.num_sampled_tokens == trajectory.num_sampled > 0
            assert set(trajectory.versions) == {-1, policy.version.pack()}
        assert len({trajectory.token_ids for trajectory in trajectories}) > 1
        assert stage.scheduler.returned == []
    assert stage.boxes.num_opened in (0, 6)
    assert stage.boxes.num_destroyed == stage.boxes.num_opened
    assert stage.boxes.num_calls <= 1


async def test_a_failing_sandbox_is_no_score(tmp_path, stage_of, task_of) -> None:
    async with stage_of(tmp_path) as stage:
        await stage.publish(1)
        stage.boxes.is_broken = True
        stage.scheduler.add(task_of("code.repair"), LATEST, group_id="g1", size=4)
        (fact,) = await stage.recorded()
        failed = [member for member in fact.members if not member.completed]
        assert failed
        assert {member.attribution for member in failed} == {common.ATTRIBUTION_SANDBOX}
        assert all("no box to be had" in member.ending for member in failed)
        assert fact.HasField("object") == (len(failed) < len(fact.members))


async def test_a_raising_engine_is_no_score_and_its_policy_is_read_again(tmp_path, stage_of, task_of) -> None:
    def player(task, seed):
        def say(observation):
            if seed == 0:
                raise EngineFailure("out of memory")
            return "done"

        return say

    async with stage_of(tmp_path, players=player) as stage:
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=3)
        (fact,) = await stage.recorded()
        assert [member.completed for member in fact.members] == [False, True, True]
        assert fact.members[0].attribution == common.ATTRIBUTION_ENGINE
        assert [trajectory.index for trajectory in await stage.trajectories(fact)] == [1, 2]
        assert stage.serving.loaded is None
        stage.scheduler.add(task_of(), LATEST, group_id="g2", size=1)
        await stage.recorded(2)
        assert stage.serving.loaded is None or stage.serving.loaded.version.step == 1


async def test_an_endless_turn_is_the_infrastructures(tmp_path, stage_of, task_of) -> None:
    async with stage_of(tmp_path, turn_s=60.0, member_wall_s=0.1) as stage:
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=2)
        (fact,) = await stage.recorded()
        assert {member.attribution for member in fact.members} == {common.ATTRIBUTION_SCHEDULER}
        assert not fact.HasField("object")


async def test_a_long_winded_player_overflows_and_a_talkative_one_spends_its_turns(tmp_path, stage_of, task_of) -> None:
    def player(task, seed):
        return lambda _: "<|call|>nothing" if seed else "word " * 100

    async with stage_of(tmp_path, players=player) as stage:
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=2)
        (fact,) = await stage.recorded()
        assert [member.ending for member in fact.members] == ["turn_overflow", "turns_spent"]
        assert [member.attribution for member in fact.members] == [
            common.ATTRIBUTION_POLICY,
            common.ATTRIBUTION_BUDGET,
        ]
        for trajectory in await stage.trajectories(fact):
            check_alignment(trajectory, stage.tokenizer)


async def test_an_observation_without_room_for_another_turn_spends_the_tokens(tmp_path, stage_of, task_of) -> None:
    def player(task, seed):
        return lambda _: "<|call|>nothing"

    async with stage_of(tmp_path, players=player) as stage:
        await stage.publish(1)
        task = task_of()
        prompt = len(stage.tokenizer.encode_prompt(task.messages))
        turn = len(stage.tokenizer.encode_assistant("<|call|>nothing"))
        seen = len(stage.tokenizer.encode_observation("bad call"))
        for number, room in enumerate((turn + seen, turn + seen + 1, turn - 1)):
            limits = replace(task.limits, max_tokens=prompt + room)
            stage.scheduler.add(replace(task, limits=limits), LATEST, group_id=f"g{number}", size=1)
        facts = {fact.group_id: fact for fact in await stage.recorded(3)}
        for fact in facts.values():
            (member,) = fact.members
            assert (member.ending, member.attribution) == ("tokens_spent", common.ATTRIBUTION_BUDGET)
            (trajectory,) = await stage.trajectories(fact)
            check_alignment(trajectory, stage.tokenizer)
            assert len(trajectory.token_ids) <= trajectory.task.limits.max_tokens
        assert [facts[f"g{number}"].members[0].num_turns for number in range(3)] == [1, 2, 1]


async def test_a_prompt_that_fills_the_task_is_a_bad_task(tmp_path, stage_of, task_of, eventually) -> None:
    async with stage_of(tmp_path) as stage:
        await stage.publish(1)
        limits = replace(task_of().limits, max_tokens=8)
        stage.scheduler.add(replace(task_of(), limits=limits), LATEST, group_id="g1")
        await eventually(lambda: bool(stage.scheduler.returned))
        assert stage.scheduler.returned[0].attribution == common.ATTRIBUTION_BAD_TASK


async def test_lost_members_are_dropped_and_the_rest_recorded(tmp_path, stage_of, task_of, eventually) -> None:
    async with stage_of(tmp_path, turn_s=0.5, lease_s=0.3) as stage:
        await stage.publish(1)
        stage.scheduler.lost.add(("g1", 1, 1))
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=3)
        (fact,) = await stage.recorded()
        assert [member.index for member in fact.members] == [0, 2]
        assert [trajectory.index for trajectory in await stage.trajectories(fact)] == [0, 2]
        assert stage.scheduler.returned == []
        assert len(stage.scheduler.renewed) >= 2
        assert len(stage.scheduler.renewed[-1].attempts) < 3


async def test_a_wholly_lost_group_is_not_mentioned(tmp_path, stage_of, task_of, eventually) -> None:
    async with stage_of(tmp_path, turn_s=5.0, lease_s=0.3) as stage:
        await stage.publish(1)
        stage.scheduler.lost.update({("g1", 0, 1), ("g1", 1, 1)})
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=2)
        await eventually(lambda: bool(stage.scheduler.renewed))
        await eventually(lambda: stage.slot_time.num_busy == 0)
        assert await stage.facts("trajectory.recorded") == []
        assert stage.scheduler.returned == []


async def test_groups_wait_for_the_runs_first_policy(tmp_path, stage_of, task_of, eventually) -> None:
    async with stage_of(tmp_path) as stage:
        stage.scheduler.add(task_of(), LATEST, group_id="g1")
        await eventually(lambda: stage.slot_time.num_busy == 4)
        await asyncio.sleep(0.05)
        assert stage.slot_time.totals(time.monotonic())["no_policy"] > 0
        await stage.publish(0)
        await stage.recorded()


async def test_weights_are_taken_in_flight_and_told_token_by_token(tmp_path, stage_of, task_of, eventually) -> None:
    asked: list[str | None] = []

    def player(task, seed):
        def say(observation):
            asked.append(observation)
            return "<|call|>nothing"

        return say

    async with stage_of(tmp_path, players=player, turn_s=0.2) as stage:
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=2)
        await eventually(lambda: len(asked) >= 2)
        await stage.publish(2)
        (fact,) = await stage.recorded()
        assert {member.oldest_version.step for member in fact.members} == {1}
        for trajectory in await stage.trajectories(fact):
            assert {version & 0xFFFFFFFF for version in trajectory.versions if version >= 0} == {1, 2}
        assert stage.scheduler.asked[-1].loaded.version.step == 2


async def test_another_policy_waits_until_the_first_ones_groups_are_done(tmp_path, stage_of, task_of) -> None:
    async with stage_of(tmp_path, turn_s=0.05) as stage:
        await stage.publish(5)
        pinned = await stage.publish(9, run_id="other")
        stage.scheduler.add(task_of(), LATEST, group_id="g1")
        stage.scheduler.add(task_of(number=1), pinned, group_id="g2", run_id="eval")
        facts = {fact.group_id: fact for fact in await stage.recorded(2)}
        assert {member.oldest_version.step for member in facts["g1"].members} == {5}
        assert {member.oldest_version.step for member in facts["g2"].members} == {9}


async def test_a_refused_policy_serves_nobody_and_raises_one_alert(
    tmp_path, stage_of, task_of, eventually, monkeypatch
) -> None:
    async def refuse(policy, *, is_pinned):
        raise PolicyRefused("digest of model.safetensors")

    async with stage_of(tmp_path) as stage:
        monkeypatch.setattr(stage.engine, "load", refuse)
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="g1")
        stage.scheduler.add(task_of(), LATEST, group_id="g2")
        await eventually(lambda: len(stage.scheduler.returned) == 2)
        for request in stage.scheduler.returned:
            assert request.attribution == common.ATTRIBUTION_ENGINE
            assert "digest of model.safetensors" in request.detail
        (alert,) = await stage.alerts()
        assert alert.name == "engine.policy_refused"
        assert stage.serving.loaded is None


async def test_a_task_of_another_pack_version_is_given_back(tmp_path, stage_of, task_of, eventually) -> None:
    async with stage_of(tmp_path) as stage:
        await stage.publish(1)
        stage.scheduler.add(replace(task_of(), domain_ref="math.tool@1+other"), LATEST, group_id="g1")
        stage.scheduler.add(replace(task_of(), domain="math.tols"), LATEST, group_id="g2")
        long = replace(task_of().limits, max_tokens=5000)
        stage.scheduler.add(replace(task_of(), limits=long), LATEST, group_id="g3")
        await eventually(lambda: len(stage.scheduler.returned) == 3)
        expected = {
            "g1": (common.ATTRIBUTION_SCHEDULER, "math.tool@1+other"),
            "g2": (common.ATTRIBUTION_SCHEDULER, "did you mean math.tool"),
            "g3": (common.ATTRIBUTION_ENGINE, "ROLLOUT_MAX_TOKENS"),
        }
        for group_id, (attribution, words) in expected.items():
            (request,) = stage.scheduler.returns_of(group_id)
            assert request.attribution == attribution
            assert words in request.detail
            assert len(request.attempts) == 4


async def test_results_that_cannot_be_stored_are_a_storage_failure(tmp_path, stage_of, task_of, monkeypatch) -> None:
    async def full(key, data):
        raise JourneymanError(ErrorCode.INTERNAL, "no space left", retryable=False)

    async with stage_of(tmp_path) as stage:
        await stage.publish(1)
        monkeypatch.setattr(stage.objects, "put", full)
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=3)
        (fact,) = await stage.recorded()
        assert {(member.completed, member.attribution) for member in fact.members} == {
            (False, common.ATTRIBUTION_STORAGE)
        }


async def test_draining_returns_what_has_not_begun_and_finishes_the_rest(
    tmp_path, stage_of, task_of, eventually
) -> None:
    async with stage_of(tmp_path, turn_s=0.1) as stage:
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="begun")
        stage.scheduler.add(task_of(), LatestPolicy(run_id="unheard of"), group_id="waiting")
        await eventually(lambda: stage.slot_time.num_busy == 8)
        await stage.worker.drain()
        (request,) = stage.scheduler.returned
        assert {name.group_id for name in request.attempts} == {"waiting"}
        assert request.attribution == common.ATTRIBUTION_UNSPECIFIED
        (fact,) = await stage.recorded()
        assert fact.group_id == "begun"
        assert len(fact.members) == 4
        assert stage.slot_time.num_busy == 0


async def test_draining_gives_back_what_outlasts_the_grace(tmp_path, stage_of, task_of, eventually) -> None:
    def player(task, seed):
        return lambda _: "done" if seed == 0 else "<|call|>nothing"

    async with stage_of(tmp_path, players=player, turn_s=0.6, drain_grace_s=0.8) as stage:
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="g1", size=3)
        await eventually(lambda: stage.slot_time.num_busy == 3)
        await stage.worker.drain()
        (fact,) = await stage.recorded()
        assert [member.index for member in fact.members] == [0]
        (request,) = stage.scheduler.returned
        assert [name.index for name in request.attempts] == [1, 2]
        assert request.attribution == common.ATTRIBUTION_UNSPECIFIED


async def test_slot_seconds_are_reported_once(tmp_path, stage_of, task_of, eventually) -> None:
    started_s = time.monotonic()
    async with stage_of(tmp_path, turn_s=0.05) as stage:
        await stage.publish(1)
        stage.scheduler.add(task_of(), LATEST, group_id="g1")
        await stage.recorded()
        await eventually(lambda: stage.slot_time.num_busy == 0)
        reported: dict[str, float] = {}
        for request in stage.scheduler.asked:
            for entry in request.slot_seconds:
                reported[entry.cause] = reported.get(entry.cause, 0.0) + entry.seconds
        assert reported["decode"] > 4 * 0.04
        assert reported["no_lease"] > 0
        assert sum(reported.values()) <= 64 * (time.monotonic() - started_s + 0.5)
