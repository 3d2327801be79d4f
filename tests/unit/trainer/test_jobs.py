"""Jobs as clients see them: init, cold start with kill and resume, conflicts, stops, bad input."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import torch

from journeyman.artefacts import MadeHow, read_policy, write_policy
from journeyman.bus.memory import MemoryBus
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.objects.folder import FolderObjects
from journeyman.packs.load import load_pack
from journeyman.records import PolicyRef, PolicyVersion
from trainer_service.adapters.bus import BusFacts
from trainer_service.adapters.job_store import ObjectJobStore
from trainer_service.app import Trainer
from trainer_service.cold_start import ColdStart, Halt
from trainer_service.core.records import InitSpec, Job, JobState, SftSpec
from trainer_service.initial import make_initial
from trainer_service.learner import ComputeThread

DOMAINS = ("longcontext.retrieval",)
CONFIG = ModelConfig(
    vocab_size=320, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, head_dim=16,
)  # fmt: skip
INIT = InitSpec(seed=0, domains=DOMAINS, from_path="")


class Killed(Exception):
    """Stands for kill -9."""


@pytest.fixture
async def compute() -> AsyncIterator[ComputeThread]:
    thread = ComputeThread()
    yield thread
    thread.close()


async def small_base(objects: FolderObjects) -> PolicyRef:
    """As init makes it, with fewer and narrower layers."""
    return await write_policy(
        objects,
        run_id="init",
        version=PolicyVersion(incarnation=0, step=0),
        model=initialise(Qwen3(CONFIG), 0),
        tokenizer=ChatTokenizer.train(load_pack(DOMAINS[0]).vocabulary_texts(), CONFIG.vocab_size),
        made_how=MadeHow(stage="init"),
    )


def sft(base: PolicyRef, num_steps: int) -> SftSpec:
    return SftSpec(base=base, domains=DOMAINS, num_steps=num_steps, num_episodes=64, seed=0, checkpoint_every=10)


def trainer(folder: Path, compute: ComputeThread) -> Trainer:
    objects = FolderObjects(folder)
    return Trainer(objects, MemoryBus(), ObjectJobStore(objects), compute, sft_threads=1, rl_threads=1)


async def ended(app: Trainer, job_id: str) -> Job:
    """The job once it is over; the app's loop runs meanwhile."""
    stop = asyncio.Event()
    loop = asyncio.ensure_future(app.run(stop))
    async with asyncio.timeout(60):
        while not app.job(job_id).state.is_over:  # noqa: ASYNC110  # clients poll, so does the test
            await asyncio.sleep(0.01)
    stop.set()
    await loop
    return app.job(job_id)


async def test_a_killed_cold_start_ends_with_the_weights_of_an_undisturbed_one(
    tmp_path: Path, compute: ComputeThread
) -> None:
    weights = []
    for folder, kill_at in ((tmp_path / "calm", None), (tmp_path / "killed", 20)):
        objects = FolderObjects(folder)
        base = await small_base(objects)

        def job(objects: FolderObjects = objects, base: PolicyRef = base) -> ColdStart:
            return ColdStart("sft", sft(base, 30), objects, ObjectJobStore(objects), BusFacts(MemoryBus()))

        steps: list[int] = []

        async def progress(
            step: int, figures: Mapping[str, float], kill_at: int | None = kill_at, steps: list[int] = steps
        ) -> Halt | None:
            steps.append(step)
            if step == kill_at and steps.count(step) == 1:
                raise Killed
            return None

        with contextlib.suppress(Killed):
            await job().run(compute, 1, progress)
        ref = await job().run(compute, 1, progress)
        if kill_at is not None:
            assert steps == [10, 20, 30], "it goes on at the checkpoint of the step that was done"
        weights.append((await read_policy(objects, ref)).weights)
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


async def test_init_is_the_same_for_a_seed_and_another_for_another(tmp_path: Path, compute: ComputeThread) -> None:
    objects = FolderObjects(tmp_path)
    first = await make_initial("init", INIT, objects, compute, 1)
    again = await make_initial("init", INIT, objects, compute, 1)
    other = await make_initial("other", InitSpec(seed=1, domains=DOMAINS, from_path=""), objects, compute, 1)
    assert first == again
    one, two = (await read_policy(objects, first)).manifest, (await read_policy(objects, other)).manifest
    assert one.tensor_checksum != two.tensor_checksum


async def test_jobs_run_in_order_and_outlive_the_process(tmp_path: Path, compute: ComputeThread) -> None:
    app = trainer(tmp_path, compute)
    await app.load()
    await app.start_job("init", INIT)
    done = await ended(app, "init")
    assert (done.state, str(done.policy.version if done.policy else None)) == (JobState.DONE, "0.0")
    assert await app.start_job("init", INIT) == done

    assert done.policy is not None
    await app.start_job("sft", sft(done.policy, 10))
    second = trainer(tmp_path, compute)
    await second.load()
    assert second.job("init") == done
    assert (await ended(second, "sft")).state is JobState.DONE
    assert second.job("sft").num_steps_done == 10
    assert "loss" in second.job("sft").metrics


async def test_conflicts_stops_and_unknown_jobs(tmp_path: Path, compute: ComputeThread) -> None:
    app = trainer(tmp_path, compute)
    await app.start_job("init", INIT)
    with pytest.raises(JourneymanError) as conflict:
        await app.start_job("init", InitSpec(seed=9, domains=DOMAINS, from_path=""))
    assert conflict.value.code is ErrorCode.CONFLICT
    assert (await app.stop_job("init")).state is JobState.STOPPED
    with pytest.raises(JourneymanError) as unknown:
        app.job("nobody")
    assert unknown.value.code is ErrorCode.NOT_FOUND


async def test_a_wrong_model_folder_fails_the_job_in_one_line(tmp_path: Path, compute: ComputeThread) -> None:
    app = trainer(tmp_path / "objects", compute)
    await app.start_job("init", InitSpec(seed=0, domains=DOMAINS, from_path=str(tmp_path / "absent")))
    job = await ended(app, "init")
    assert job.state is JobState.FAILED
    assert "absent" in job.error
    assert "Qwen3ForCausalLM" in job.error
    assert not await FolderObjects(tmp_path / "objects").list("policies/")
