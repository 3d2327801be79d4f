"""The torch engine against a plain forward pass: its log-probabilities are those the trainer computes, whatever shares the batch."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from journeyman.artefacts import MadeHow, write_policy
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.model.config import ModelConfig
from journeyman.model.decoder import Decoder
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.model.sampling import masked_logp
from journeyman.objects.folder import FolderObjects
from journeyman.records import Limits, Message, PolicyRef, PolicyVersion, Role, Split, Task
from rollout_service.core.turns import NewSequence, Stop
from rollout_service.engines.torch_engine import TorchEngine, TorchEngineOptions
from rollout_service.ports import EngineFailure, PolicyRefused

CONFIG = ModelConfig(
    vocab_size=300,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=128,
)
TASK = Task(
    task_id="t",
    domain="d",
    domain_ref="d@1+0",
    split=Split.TRAIN,
    level=1,
    seed=0,
    messages=(Message(role=Role.USER, content="hello"),),
    tools=(),
    files=(),
    limits=Limits(max_turns=4, max_turn_tokens=8, max_tokens=100, tool_cpu_s=1.0),
    verification_json="{}",
)
TOKENIZER = ChatTokenizer.train(["hello world 12"], 300)


def model(seed: int) -> Qwen3:
    return initialise(Qwen3(CONFIG), seed).eval()


async def publish(objects: FolderObjects, step: int) -> PolicyRef:
    return await write_policy(
        objects,
        run_id="run",
        version=PolicyVersion(incarnation=0, step=step),
        model=model(step),
        tokenizer=TOKENIZER,
        made_how=MadeHow(stage="rl"),
    )


@asynccontextmanager
async def engine(folder: Path, *, num_slots: int = 16, recompute: bool = False) -> AsyncIterator[TorchEngine]:
    options = TorchEngineOptions(
        num_slots=num_slots, max_tokens=100, num_threads=1, num_threads_pinned=1, recompute_on_swap=recompute
    )
    running = TorchEngine(FolderObjects(folder), options)
    try:
        yield running
    finally:
        await running.close()


@dataclass
class Played:
    """One sequence as the engine and its user saw it."""

    ids: list[int]
    num_prompt: int
    opened_in: int
    logprobs: dict[int, float] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    observed: set[int] = field(default_factory=set)


def sequence(number: int, prompt: list[int], temperature: float = 1.0, max_tokens: int = 90) -> NewSequence:
    return NewSequence(
        sequence_id=number,
        prompt_ids=tuple(prompt),
        seed=1000 + number,
        temperature=temperature,
        max_turn_tokens=8,
        max_tokens=max_tokens,
        task=TASK,
    )


async def converse(
    running: TorchEngine, number: int, prompt: list[int], version: int, num_turns: int, pauses: random.Random
) -> Played:
    """Opens one sequence, shows it an observation after each turn, leaves."""
    played = Played(ids=[*prompt], num_prompt=len(prompt), opened_in=version)
    (awaited,) = running.open([sequence(number, prompt)])
    for turn_number in range(num_turns):
        turn = await awaited
        for identity, logprob, sampled_in in zip(turn.ids, turn.logprobs, turn.versions, strict=True):
            played.logprobs[len(played.ids)] = logprob
            played.versions[len(played.ids)] = sampled_in
            played.ids.append(identity)
        if turn_number == num_turns - 1:
            break
        for _ in range(pauses.randrange(40)):
            await asyncio.sleep(0)
        if pauses.random() < 0.3:
            await asyncio.sleep(0.02)  # long enough to be moved to a parking slot
        seen = TOKENIZER.encode_observation(str(pauses.randrange(1000)))
        played.observed.update(range(len(played.ids), len(played.ids) + len(seen)))
        played.ids += seen
        awaited = running.go_on(number, seen)
    running.leave([number])
    return played


def full_forward(weights: Qwen3, ids: list[int]) -> list[float]:
    """Log-probability of each token but the first, as the trainer computes it."""
    with torch.no_grad():
        ids_BT = torch.tensor([ids])
        logp = masked_logp(weights.logits(weights.hidden(ids_BT)), TOKENIZER.forbidden_ids)
        return [0.0, *logp[0, :-1].gather(-1, ids_BT[0, 1:, None])[:, 0].tolist()]


async def play_through_a_swap(folder: Path, *, recompute: bool) -> list[Played]:
    """Forty conversations over sixteen slots, joining and leaving all the time; new weights arrive when half have begun."""
    objects = FolderObjects(folder)
    old, new = await publish(objects, 0), await publish(objects, 1)
    pauses = random.Random(1)
    async with engine(folder, recompute=recompute) as running:
        await running.load(old, is_pinned=False)
        room = asyncio.Semaphore(16)
        version = old.version.pack()
        half_begun = asyncio.Event()

        async def one(number: int) -> Played:
            async with room:
                if number == 20:
                    half_begun.set()
                text = "hello world"[: 3 + number % 5]
                prompt = TOKENIZER.encode_prompt([Message(role=Role.USER, content=text)])
                return await converse(running, number, prompt, version, 1 + number % 4, pauses)

        async def swap() -> None:
            nonlocal version
            await half_begun.wait()
            await running.load(new, is_pinned=False)
            version = new.version.pack()

        *played, _ = await asyncio.gather(*(one(number) for number in range(40)), swap())
    return [entry for entry in played if entry is not None]


@pytest.mark.parametrize("recompute", [False, True])
async def test_logprobs_equal_a_full_forward_of_the_version_that_sampled(tmp_path: Path, recompute: bool) -> None:
    played = await play_through_a_swap(tmp_path, recompute=recompute)
    reference = {step: model(step) for step in (0, 1)}
    num_compared = {0: 0, 1: 0}
    num_mixed = 0
    for entry in played:
        by_version = {step: full_forward(weights, entry.ids) for step, weights in reference.items()}
        is_mixed = len({*entry.versions.values(), entry.opened_in}) > 1
        for position, logprob in entry.logprobs.items():
            step = entry.versions[position]
            if is_mixed and step == 1 and not recompute:
                num_mixed += 1
                continue  # its cache holds what the old weights made: the test below
            assert logprob == pytest.approx(by_version[step][position], abs=1e-4)
            num_compared[step] += 1
    assert min(num_compared.values()) > 50
    if not recompute:
        assert num_mixed > 0


async def test_without_recomputing_logprobs_are_those_of_the_mixture_that_sampled(tmp_path: Path) -> None:
    played = await play_through_a_swap(tmp_path, recompute=False)
    num_compared = 0
    for entry in played:
        first_new = min((at for at, step in entry.versions.items() if step == 1), default=None)
        if first_new is None or entry.opened_in == 1 or entry.versions.get(first_new - 1) != 0:
            continue  # only where the swap fell between two sampled tokens is it known which weights read what
        decoder = Decoder(model(0), 1, 100)
        for position, identity in enumerate(entry.ids[:-1]):
            if position == first_new - 1:
                decoder.load(model(1).state_dict())
            logits = decoder.step(torch.tensor([identity]), torch.tensor([position]), 1)
            if position + 1 in entry.logprobs:
                logp = masked_logp(logits[0], TOKENIZER.forbidden_ids)[entry.ids[position + 1]]
                assert entry.logprobs[position + 1] == pytest.approx(float(logp), abs=1e-4)
                num_compared += 1
    assert num_compared > 0


async def test_what_is_sampled_depends_on_the_seed_and_not_on_the_batch(tmp_path: Path) -> None:
    ref = await publish(FolderObjects(tmp_path), 0)
    prompt = TOKENIZER.encode_prompt(TASK.messages)
    async with engine(tmp_path) as running:
        await running.load(ref, is_pinned=False)
        (alone,) = running.open([sequence(7, prompt)])
        alone_ids = (await alone).ids
        running.leave([7])
        others = running.open([sequence(number, prompt[:2] if number % 2 else prompt) for number in range(10)])
        together = [(await turn).ids for turn in others]
        assert together[7] != alone_ids  # another prompt
        running.leave(range(10))
        again = running.open([sequence(number, prompt) for number in range(10)])
        assert (await again[7]).ids == alone_ids
        await asyncio.gather(*again)


async def test_turns_stop_for_their_own_reason(tmp_path: Path) -> None:
    ref = await publish(FolderObjects(tmp_path), 0)
    prompt = TOKENIZER.encode_prompt(TASK.messages)
    async with engine(tmp_path) as running:
        await running.load(ref, is_pinned=False)
        full = running.open([sequence(1, prompt, max_tokens=len(prompt) + 2)])[0]
        greedy = running.open([sequence(2, prompt, temperature=0.0)])[0]
        for turn, most in ((await full, 2), (await greedy, 8)):
            assert len(turn.ids) <= most
            assert (turn.stop is Stop.END) == (turn.ids[-1] == TOKENIZER.end_id)
            assert not set(turn.ids) & set(TOKENIZER.forbidden_ids)
        assert (await full).stop in (Stop.FULL, Stop.END)
        figures = running.figures()
        assert figures.sampled_tokens > 0
        assert figures.entropy > 0


async def test_it_fails_closed(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    ref = await publish(objects, 0)
    prompt = TOKENIZER.encode_prompt(TASK.messages)
    await objects.put(f"{ref.uri}/model.safetensors", b"something else")
    async with engine(tmp_path) as running:
        with pytest.raises(PolicyRefused, match=r"digest of model\.safetensors"):
            await running.load(ref, is_pinned=False)
        (turn,) = running.open([sequence(1, prompt)])
        with pytest.raises(EngineFailure, match="no policy is loaded"):
            await turn


async def test_sequences_beyond_the_slots_fail_and_closing_fails_the_rest(tmp_path: Path) -> None:
    ref = await publish(FolderObjects(tmp_path), 0)
    prompt = TOKENIZER.encode_prompt(TASK.messages)
    async with engine(tmp_path, num_slots=2) as running:
        await running.load(ref, is_pinned=True)
        turns = running.open([sequence(number, prompt) for number in range(3)])
        with pytest.raises(EngineFailure, match="no slot is free"):
            await turns[2]
        await asyncio.gather(*turns[:2])
        waiting = running.go_on(0, [TOKENIZER.tool_id] * 70)
    with pytest.raises(EngineFailure, match="closed"):
        await waiting
