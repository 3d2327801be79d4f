"""The whole loop in one readable file and one process, without services: model, cold start, multi-turn GRPO, evaluation.

It is the oracle for the trainer's mathematics (a test compares loss and gradients), the yardstick for what the services cost
(benchmarks/loop.py) and the quickest place to try a recipe. Domain packs, tools, ladders and boxes are those that the services use.

    python examples/one_file_loop.py --seed 0 --steps 60 --json result.json

Shapes: B rollouts, T tokens, N trained tokens of a batch, V vocabulary.
"""

import asyncio
import json
import math
import os
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import click
import torch
from torch import Tensor
from torch.nn import functional as F

from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.episodes.episode import Episode
from journeyman.model.config import ModelConfig
from journeyman.model.decoder import Decoder
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.model.sampling import sample, uniforms
from journeyman.packs.load import list_packs
from journeyman.packs.port import DomainPack, TierContext
from journeyman.records import Attribution, Split, Step, Task, TaskFile, Trajectory
from journeyman.rewards import shape_rewards
from sandbox_service.adapters.local_boxes import LocalBox, LocalBoxes, local_boxes
from trainer_service.core.demonstrations import SftRow, sft_rows
from trainer_service.core.optim import cold_start_optimisers
from trainer_service.core.sft import batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that was chosen; the same for every seed."""

    vocab_size: int = 512
    num_demonstrations: int = 16_000
    sft_steps: int = 1200
    muon_lr: float = 0.02
    adam_lr: float = 4e-3
    steps: int = 60
    groups_per_step: int = 12
    group_size: int = 16
    lr: float = 1e-3
    clip_low: float = 0.2
    clip_high: float = 0.28
    entropy_bonus: float = 0.005
    max_grad_norm: float = 1.0
    min_advantage: float = 1e-3
    """Rollouts whose advantage is smaller have no gradient worth computing."""
    micro_batch: int = 64
    max_tokens: int = 256
    """Of one rollout, at most."""
    eval_tasks: int = 120
    """Held-out tasks a domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """A rollout after its ladder; what shape_rewards asks of a member."""

    trajectory: Trajectory
    passed: bool
    partial: float
    num_turns: int


# ---------------------------------------------------------------------------------------------------------------- mathematics


def pad(rows: Sequence[Sequence[float]], dtype: torch.dtype) -> Tensor:
    """Rows side by side, filled with zeros on the right."""
    out_BT = torch.zeros(len(rows), max(map(len, rows)), dtype=dtype)
    for index, row in enumerate(rows):
        out_BT[index, : len(row)] = torch.tensor(row, dtype=dtype)
    return out_BT


def cold_start_loss(model: Qwen3, rows: Sequence[SftRow]) -> Tensor:
    """Cross entropy of the next token, weighted by token."""
    ids_BT = pad([row.token_ids for row in rows], torch.long)
    weight_BT = pad([row.weights for row in rows], torch.float32)[:, 1:]
    trained_BT = weight_BT > 0
    logits_NV = model.logits(model.hidden(ids_BT[:, :-1])[trained_BT])
    nll_N = F.cross_entropy(logits_NV, ids_BT[:, 1:][trained_BT], reduction="none")
    return (nll_N * weight_BT[trained_BT]).sum() / weight_BT.sum()


def advantages(rewards: Sequence[float], groups: Sequence[str], domains: Sequence[str]) -> list[float]:
    """Reward minus the group's mean, over the domain's root mean square plus 0.1, so that no domain drowns another."""
    by_group, by_domain = defaultdict(list), defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        by_group[group].append(reward)
    centred = [r - sum(by_group[g]) / len(by_group[g]) for r, g in zip(rewards, groups, strict=True)]
    for value, domain in zip(centred, domains, strict=True):
        by_domain[domain].append(value * value)
    return [a / (math.sqrt(sum(by_domain[d]) / len(by_domain[d])) + 0.1) for a, d in zip(centred, domains, strict=True)]


def policy_loss(
    model: Qwen3, batch: Sequence[Trajectory], advantage_B: Sequence[float], forbidden: Sequence[int], recipe: Recipe
) -> Tensor:
    """Clipped policy gradient and entropy bonus, summed over sampled tokens; the caller divides by their number in the step."""
    ids_BT = pad([trajectory.token_ids for trajectory in batch], torch.long)
    sampled_BT = pad([trajectory.is_sampled for trajectory in batch], torch.bool)[:, 1:]
    old_logp_N = pad([trajectory.logprobs for trajectory in batch], torch.float32)[:, 1:][sampled_BT]
    advantage_N = torch.tensor(advantage_B)[:, None].expand(sampled_BT.shape)[sampled_BT]
    logits_NV = model.logits(model.hidden(ids_BT[:, :-1])[sampled_BT])
    logits_NV[:, list(forbidden)] = torch.finfo(torch.float32).min
    logp_NV = torch.log_softmax(logits_NV, -1)
    logp_N = logp_NV.gather(1, ids_BT[:, 1:][sampled_BT][:, None])[:, 0]
    ratio_N = (logp_N - old_logp_N).exp()
    clipped_N = ratio_N.clamp(1 - recipe.clip_low, 1 + recipe.clip_high)
    gain_N = torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)
    entropy_N = -(logp_NV.exp() * logp_NV).sum(-1)
    return -(gain_N + recipe.entropy_bonus * entropy_N).sum()


# ------------------------------------------------------------------------------------------------------------------ cold start


def cold_start(model: Qwen3, rows: Sequence[SftRow], recipe: Recipe, seed: int) -> None:
    """Imitates imperfect demonstrations; the learning rates rise over 20 steps and fall over the second half."""
    optimisers = cold_start_optimisers(model, recipe.muon_lr, recipe.adam_lr)
    plan = batches(len(rows), [len(row.token_ids) for row in rows], recipe.sft_steps, seed)
    for step, numbers in enumerate(plan):
        factor = min(1.0, (step + 1) / 20) * min(1.0, max(0.05, 2 * (1 - step / recipe.sft_steps)))
        loss = cold_start_loss(model, [rows[number] for number in numbers])
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
        for optimiser, peak in zip(optimisers, (recipe.muon_lr, recipe.adam_lr), strict=True):
            optimiser.param_groups[0]["lr"] = peak * factor
            optimiser.step()
        model.zero_grad()
        if (step + 1) % 100 == 0:
            click.echo(f"cold start {step + 1}: loss {loss.item():.3f}", err=True)


# ------------------------------------------------------------------------------------------------------------------------ play


class Seat:
    """One rollout in play: its episode and its tokens so far."""

    def __init__(self, episode: Episode, task: Task, name: tuple[int, int, int], prompt: Sequence[int]) -> None:
        self.episode, self.task, (self.group, self.index, self.seed) = episode, task, name
        self.ids, self.turn_start, self.fed = list(prompt), len(prompt), len(prompt) - 1
        self.sampled, self.logprobs = [False] * len(prompt), [0.0] * len(prompt)
        self.steps: list[Step] = []
        self.ending: tuple[str, Attribution] | None = None

    async def end_turn(self, tokenizer: ChatTokenizer) -> None:
        """Lets the episode answer the turn that was just completed."""
        said, limits = self.ids[self.turn_start :], self.task.limits
        is_whole = said[-1] == tokenizer.end_id
        text = tokenizer.decode(said[:-1] if is_whole else said)
        turn = await self.episode.advance(text, overflow=not is_whole)
        span = {"start": self.turn_start, "end": len(self.ids)}
        self.steps.append(Step(**span, text=text, call=turn.call, observation=turn.observation, tool_s=turn.tool_s))
        seen = tokenizer.encode_observation(turn.observation or "")
        if turn.ending is not None and turn.attribution is not None:
            self.ending = (turn.ending, turn.attribution)
        elif len(self.ids) + len(seen) + limits.max_turn_tokens > limits.max_tokens:
            self.ending = ("tokens_spent", Attribution.BUDGET)
        else:
            self.ids += seen
            self.sampled += [False] * len(seen)
            self.logprobs += [0.0] * len(seen)
            self.turn_start = len(self.ids)

    async def trajectory(self) -> Trajectory:
        """The record that the services would store."""
        assert self.ending is not None
        return Trajectory(
            run_id="one-file",
            group_id=str(self.group),
            index=self.index,
            attempt=1,
            seed=self.seed,
            task=self.task,
            token_ids=tuple(self.ids),
            is_sampled=tuple(self.sampled),
            logprobs=tuple(self.logprobs),
            versions=tuple(0 if sampled else -1 for sampled in self.sampled),
            steps=tuple(self.steps),
            response=self.episode.response,
            final_files=await self.episode.final_files(),
            attribution=self.ending[1],
            ending=self.ending[0],
            wall_s=0.0,
        )


async def decode(decoder: Decoder, seats: Sequence[Seat], tokenizer: ChatTokenizer) -> None:
    """Advances all seats together, one token a step, until every episode is over; live seats stay a dense prefix of the slots."""
    live = list(seats)
    while live:
        tokens_N, positions = torch.tensor([seat.ids[seat.fed] for seat in live]), [seat.fed for seat in live]
        logits_NV = decoder.step(tokens_N, torch.tensor(positions), len(live))
        rows = [row for row, seat in enumerate(live) if seat.fed == len(seat.ids) - 1]
        for seat in live:
            seat.fed += 1
        draws_N = uniforms([live[row].seed for row in rows], [live[row].fed for row in rows])
        drawn = sample(logits_NV[rows], draws_N, forbidden_ids=tokenizer.forbidden_ids)
        ended: list[Seat] = []
        for row, token, logp in zip(rows, drawn.ids_N.tolist(), drawn.logp_N.tolist(), strict=True):
            seat = live[row]
            seat.ids.append(token)
            seat.sampled.append(True)
            seat.logprobs.append(logp)
            if token == tokenizer.end_id or len(seat.ids) - seat.turn_start >= seat.task.limits.max_turn_tokens:
                ended.append(seat)
        await asyncio.gather(*(seat.end_turn(tokenizer) for seat in ended))
        for row in reversed(range(len(live))):
            if live[row].ending is not None:
                last = live.pop()
                if row < len(live):
                    decoder.move(len(live), row)
                    live[row] = last


class Table:
    """Where a policy plays and is judged: model, tokenizer, packs and boxes."""

    def __init__(
        self, model: Qwen3, tokenizer: ChatTokenizer, packs: Mapping[str, DomainPack], boxes: LocalBoxes
    ) -> None:
        self.model, self.tokenizer, self.packs, self.boxes = model, tokenizer, packs, boxes

    async def play(self, tasks: Sequence[Task], size: int, recipe: Recipe, seed: int) -> list[Graded]:
        """Plays every task size times and judges what came out; members of a group stand together."""
        prompts = [self.tokenizer.encode_prompt(task.messages) for task in tasks]
        boxes = await asyncio.gather(*(self.open_boxes(task, task.files, size) for task in tasks))
        seats = [
            Seat(Episode(self.packs[task.domain], task, box), task, (group, index, seed + group * 1009 + index), prompt)
            for group, (task, prompt) in enumerate(zip(tasks, prompts, strict=True))
            for index, box in enumerate(boxes[group])
        ]
        decoder = Decoder(self.model, len(seats), recipe.max_tokens)
        decoder.prefill(prompts, [range(group * size, (group + 1) * size) for group in range(len(tasks))])
        await decode(decoder, seats, self.tokenizer)
        trajectories = await asyncio.gather(*(seat.trajectory() for seat in seats))
        await self.boxes.destroy([box for group in boxes for box in group if box is not None])
        return list(await asyncio.gather(*(self.judge(trajectory) for trajectory in trajectories)))

    async def judge(self, trajectory: Trajectory) -> Graded:
        """Climbs the ladder, cheapest tier first, in a fresh box."""
        task, pack, passed, partial = trajectory.task, self.packs[trajectory.task.domain], False, 0.0
        outcome = {file.path: file for file in (*task.files, *trajectory.final_files)}
        (box,) = await self.open_boxes(task, tuple(outcome.values()), 1)
        for tier in pack.spec.tiers:
            judgement = await pack.judge(tier, task, trajectory, TierContext(box=box))
            partial = max(partial, judgement.partial)
            if judgement.result.decided:
                passed = judgement.result.score >= 1.0
                break
        await self.boxes.destroy([box] if box is not None else [])
        return Graded(trajectory=trajectory, passed=passed, partial=partial, num_turns=len(trajectory.steps))

    async def open_boxes(self, task: Task, files: Sequence[TaskFile], count: int) -> Sequence[LocalBox | None]:
        """Boxes that hold the files, or as many times None where the domain needs none."""
        if not self.packs[task.domain].spec.uses_box:
            return [None] * count
        content = {file.path: file.content for file in files}
        return await self.boxes.open_group(content, count, key=uuid.uuid4().hex, lease_s=600.0)


# ---------------------------------------------------------------------------------------------------------- train and evaluate


def success(graded: Sequence[Graded]) -> dict[str, float]:
    """Share solved by domain."""
    outcomes: dict[str, list[bool]] = defaultdict(list)
    for item in graded:
        outcomes[item.trajectory.task.domain].append(item.passed)
    return {name: sum(passed) / len(passed) for name, passed in outcomes.items()}


def heldout_tasks(packs: Mapping[str, DomainPack], count: int) -> list[Task]:
    """The same count tasks a domain at every call, levels by turns."""
    streams = [[pack.tasks(Split.HELDOUT, level, 1_000_000) for level in pack.spec.levels] for pack in packs.values()]
    return [next(levels[index % len(levels)]) for levels in streams for index in range(count)]


def train_tasks(
    packs: Mapping[str, DomainPack], rates: Mapping[str, float], count: int, rng: random.Random
) -> list[Task]:
    """About count tasks: more for domains whose outcome is open, at least one each, levels at random."""
    weights = {name: 0.12 + math.sqrt(rate * (1 - rate)) for name, rate in rates.items()}
    share = count / sum(weights.values())
    names = [name for name, weight in weights.items() for _ in range(max(1, round(weight * share)))]
    levels = [rng.choice(packs[name].spec.levels) for name in names]
    return [
        next(packs[n].tasks(Split.TRAIN, level, rng.randrange(2**40))) for n, level in zip(names, levels, strict=True)
    ]


def learn(table: Table, optimiser: torch.optim.Optimizer, graded: Sequence[Graded], recipe: Recipe) -> float:
    """One optimiser step on whole groups (those of equal rewards teach nothing and are left out); returns the gradient's norm."""
    rows: list[tuple[Trajectory, float]] = []
    for start in range(0, len(graded), recipe.group_size):
        group = graded[start : start + recipe.group_size]
        rewards = shape_rewards(group, table.packs[group[0].trajectory.task.domain].spec.reward)
        if max(rewards) > min(rewards):
            rows += [(item.trajectory, reward) for item, reward in zip(group, rewards, strict=True)]
    if not rows:
        return 0.0
    scaled = advantages([r for _, r in rows], [t.group_id for t, _ in rows], [t.task.domain for t, _ in rows])
    pairs = [(t, value) for (t, _), value in zip(rows, scaled, strict=True) if abs(value) >= recipe.min_advantage]
    pairs.sort(key=lambda pair: len(pair[0].token_ids))
    num_sampled = sum(trajectory.num_sampled for trajectory, _ in pairs)
    for start in range(0, len(pairs), recipe.micro_batch):
        batch, advantage_B = zip(*pairs[start : start + recipe.micro_batch], strict=True)
        loss = policy_loss(table.model, batch, advantage_B, table.tokenizer.forbidden_ids, recipe) / num_sampled
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
    norm = torch.nn.utils.clip_grad_norm_(table.model.parameters(), recipe.max_grad_norm)
    optimiser.step()
    optimiser.zero_grad()
    return float(norm)


async def reinforce(table: Table, recipe: Recipe, seed: int) -> dict[str, int]:
    """Play, judge, learn; the learning rate rises over 3 steps and falls over the last 30 %."""
    optimiser = torch.optim.AdamW(table.model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
    rates, rng, counts = dict.fromkeys(table.packs, 0.5), random.Random(seed), {"trajectories": 0, "tokens": 0}
    for step in range(recipe.steps):
        tasks = train_tasks(table.packs, rates, recipe.groups_per_step, rng)
        graded = await table.play(tasks, recipe.group_size, recipe, rng.randrange(2**40))
        seen = success(graded)
        rates = {name: 0.7 * rate + 0.3 * seen[name] for name, rate in rates.items()}
        left = (recipe.steps - step) / recipe.steps
        optimiser.param_groups[0]["lr"] = recipe.lr * min(1.0, (step + 1) / 3, max(0.1, left / 0.3))
        norm = learn(table, optimiser, graded, recipe)
        counts["trajectories"] += len(graded)
        counts["tokens"] += sum(item.trajectory.num_sampled for item in graded)
        click.echo(f"step {step + 1}: {' '.join(f'{n} {r:.2f}' for n, r in seen.items())} norm {norm:.2f}", err=True)
    return counts


class Stopwatch:
    """When each stage began (Unix time) and what it took in wall and CPU seconds; a child process counts once it has ended."""

    def __init__(self) -> None:
        self.report: dict[str, dict[str, float]] = {"started_at": {}, "seconds": {}, "cpu_seconds": {}}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measures what is inside."""
        at, wall, cpu = time.time(), time.perf_counter(), sum(os.times()[:4])
        yield
        taken = {"started_at": at, "seconds": time.perf_counter() - wall, "cpu_seconds": sum(os.times()[:4]) - cpu}
        for kind, value in taken.items():
            self.report[kind][name] = round(value, 3)


async def run(recipe: Recipe, seed: int) -> dict[str, object]:
    """The whole loop; the result as --json writes it."""
    watch, packs = Stopwatch(), {pack.spec.name: pack for pack in list_packs()}
    with watch.stage("init"):
        texts = [text for pack in packs.values() for text in pack.vocabulary_texts()]
        tokenizer = ChatTokenizer.train(texts, recipe.vocab_size)
        rows = sft_rows(list(packs.values()), tokenizer, recipe.num_demonstrations)
    model = initialise(Qwen3(ModelConfig(vocab_size=recipe.vocab_size)), seed)
    with watch.stage("cold_start"):
        cold_start(model, rows, recipe, seed)
    async with local_boxes() as boxes:
        table, heldout = Table(model, tokenizer, packs, boxes), heldout_tasks(packs, recipe.eval_tasks)
        with watch.stage("evaluate_before"):
            before = success(await table.play(heldout, 1, recipe, seed))
        with watch.stage("rl"):
            counts = await reinforce(table, recipe, seed)
        with watch.stage("evaluate_after"):
            after = success(await table.play(heldout, 1, recipe, seed + 1))
    domains = {name: {"before": before[name], "after": after[name], "n": recipe.eval_tasks} for name in packs}
    return {"seed": seed, "domains": domains, **watch.report, **counts}


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--steps", default=Recipe().steps, show_default=True, help="Steps of reinforcement learning.")
@click.option("--sft-steps", default=Recipe().sft_steps, show_default=True, help="Steps of the cold start.")
@click.option("--threads", default=2, show_default=True, help="Threads of torch.")
@click.option("--recipe", default="{}", show_default=True, help="Other fields of Recipe to change, as a JSON object.")
@click.option("--json", "target", type=click.File("w"), default="-", help="Where the result goes; - is the screen.")
def main(seed: int, steps: int, sft_steps: int, threads: int, recipe: str, target: IO[str]) -> None:
    """Trains a model from nothing and says how often it succeeds, by domain, before and after."""
    torch.set_num_threads(threads)
    chosen = Recipe(**{"steps": steps, "sft_steps": sft_steps, **json.loads(recipe)})
    target.write(json.dumps(asyncio.run(run(chosen, seed)), indent=2) + "\n")


if __name__ == "__main__":
    main()
