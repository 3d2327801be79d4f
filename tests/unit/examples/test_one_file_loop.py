"""The one-file loop's mathematics: against plain token-by-token arithmetic, and against the trainer's."""

import math
import random
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from examples.one_file_loop import Recipe, advantages, cold_start_loss, policy_loss, run
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.packs.load import load_pack
from journeyman.records import Attribution, Split, Trajectory
from trainer_service.core.advantages import by_domain
from trainer_service.core.demonstrations import SftRow
from trainer_service.core.packing import TrainRow
from trainer_service.core.sft import sft_step
from trainer_service.core.step import StepRecipe, train_step

FORBIDDEN = (0, 1, 2, 3)
VOCABULARY = 40
TASK = next(load_pack("math.tool").tasks(Split.TRAIN, 1, 0))


def small_model(seed: int = 0) -> Qwen3:
    config = ModelConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=64,
    )  # fmt: skip
    return initialise(Qwen3(config), seed)


def played(rng: random.Random, group: int, index: int) -> Trajectory:
    """A trajectory of random tokens, with log-probabilities that are somewhat off, so that some ratios are clipped."""
    prompt, turns = rng.randint(3, 9), [(rng.randint(1, 5), rng.randint(0, 4)) for _ in range(rng.randint(1, 3))]
    sampled = [False] * prompt
    for said, seen in turns:
        sampled += [True] * said + [False] * seen
    ids = [rng.randrange(4, VOCABULARY) if is_sampled else rng.randrange(VOCABULARY) for is_sampled in sampled]
    return Trajectory(
        run_id="run",
        group_id=str(group),
        index=index,
        attempt=1,
        seed=0,
        task=TASK,
        token_ids=tuple(ids),
        is_sampled=tuple(sampled),
        logprobs=tuple(-rng.uniform(2.5, 4.5) if is_sampled else 0.0 for is_sampled in sampled),
        versions=tuple(0 if is_sampled else -1 for is_sampled in sampled),
        steps=(),
        response=None,
        final_files=(),
        attribution=Attribution.POLICY,
        ending="answered",
        wall_s=0.0,
    )


def plain_loss(model: Qwen3, batch: Sequence[Trajectory], advantage: Sequence[float], recipe: Recipe) -> torch.Tensor:
    """One trajectory, one token at a time."""
    total = torch.zeros(())
    allowed = [token for token in range(VOCABULARY) if token not in FORBIDDEN]
    for trajectory, weight in zip(batch, advantage, strict=True):
        for position in range(1, len(trajectory.token_ids)):
            if not trajectory.is_sampled[position]:
                continue
            before = torch.tensor([trajectory.token_ids[:position]])
            logits = model.logits(model.hidden(before)[0, -1])[allowed]
            logp = logits - logits.logsumexp(0)
            now = logp[allowed.index(trajectory.token_ids[position])]
            ratio = (now - trajectory.logprobs[position]).exp()
            clipped = ratio.clamp(1 - recipe.clip_low, 1 + recipe.clip_high)
            gain = torch.minimum(ratio * weight, clipped * weight)
            total = total - gain - recipe.entropy_bonus * -(logp.exp() * logp).sum()
    return total


def gradients(model: Qwen3, loss: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_and_its_gradients_are_those_of_plain_arithmetic(seed: int) -> None:
    rng, model, recipe = random.Random(seed), small_model(seed), Recipe()
    batch = [played(rng, index // 2, index % 2) for index in range(4)]
    weights = [rng.uniform(-1, 1) for _ in batch]
    fast, plain = policy_loss(model, batch, weights, FORBIDDEN, recipe), plain_loss(model, batch, weights, recipe)
    assert fast.item() == pytest.approx(plain.item(), rel=1e-4)
    for ours, theirs in zip(gradients(model, fast), gradients(model, plain), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


REWARDS = st.lists(st.floats(0, 1), min_size=4, max_size=4)


@given(st.lists(REWARDS, min_size=1, max_size=5), st.floats(0.1, 10))
def test_groups_are_centred_and_no_domain_moves_another(groups: list[list[float]], factor: float) -> None:
    names = [str(group) for group in range(len(groups)) for _ in range(4)]
    domains = ["a" if int(name) % 2 == 0 else "b" for name in names]
    rewards = [reward for group in groups for reward in group]
    result = advantages(rewards, names, domains)
    for start in range(0, len(result), 4):
        assert math.isclose(sum(result[start : start + 4]), 0.0, abs_tol=1e-9)
    stretched = [reward * factor if domain == "b" else reward for reward, domain in zip(rewards, domains, strict=True)]
    again = advantages(stretched, names, domains)
    assert [value for value, domain in zip(result, domains, strict=True) if domain == "a"] == pytest.approx(
        [value for value, domain in zip(again, domains, strict=True) if domain == "a"]
    )
    assert max(map(abs, again)) <= math.sqrt(len(rewards))


def update(model: Qwen3, before: list[torch.Tensor]) -> list[torch.Tensor]:
    """What plain gradient descent with a rate of one took off: the gradient."""
    return [old - new.detach() for old, new in zip(before, model.parameters(), strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_the_trainers_step_has_the_same_advantages_loss_and_gradients(seed: int) -> None:
    rng, model, recipe = random.Random(seed), small_model(seed), Recipe(micro_batch=3)
    groups = [[played(rng, group, index) for index in range(4)] for group in range(4)]
    rewards = [[rng.choice([0.0, 0.4, 0.9]) for _ in group] for group in groups]
    domains = ["a", "b", "a", "c"]
    flat = [trajectory for group in groups for trajectory in group]
    ours = advantages(
        [reward for group in rewards for reward in group],
        [trajectory.group_id for trajectory in flat],
        [domain for domain in domains for _ in range(4)],
    )
    theirs = [value for group in by_domain(list(zip(domains, rewards, strict=True))) for value in group]
    assert ours == pytest.approx(theirs)

    trained = [(trajectory, value) for trajectory, value in zip(flat, ours, strict=True) if abs(value) >= 1e-3]
    num_sampled = sum(trajectory.num_sampled for trajectory, _ in trained)
    loss = policy_loss(model, [t for t, _ in trained], [value for _, value in trained], FORBIDDEN, recipe) / num_sampled
    expected = gradients(model, loss)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    rows = [
        TrainRow(token_ids=t.token_ids, is_sampled=t.is_sampled, logprobs=t.logprobs, advantage=value)
        for t, value in zip(flat, theirs, strict=True)
    ]
    step = StepRecipe(max_grad_norm=1e9, entropy_bonus=recipe.entropy_bonus, micro_batch_rows=3)
    figures = train_step(model, [torch.optim.SGD(model.parameters(), lr=1.0)], rows, FORBIDDEN, step)
    assert figures["loss"] == pytest.approx(loss.item(), rel=1e-4, abs=1e-6)
    assert figures["trained_tokens"] == num_sampled
    for got, wanted in zip(update(model, before), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-5)


def test_the_trainers_cold_start_has_the_same_loss_and_gradients() -> None:
    rng, model = random.Random(7), small_model(7)
    rows = []
    for length in (5, 9, 12):
        ids = [rng.randrange(VOCABULARY) for _ in range(length)]
        rows.append(SftRow(token_ids=ids, weights=[rng.choice([0.0, 0.1, 1.0]) for _ in ids]))
    loss = cold_start_loss(model, rows)
    expected = gradients(model, loss)
    norm = torch.cat([gradient.flatten() for gradient in expected]).norm()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    figures = sft_step(model, [torch.optim.SGD(model.parameters(), lr=1.0)], rows)
    assert figures["loss"] == pytest.approx(loss.item(), rel=1e-5)
    for got, wanted in zip(update(model, before), expected, strict=True):
        torch.testing.assert_close(got, wanted / max(1.0, norm.item()), rtol=1e-3, atol=1e-5)


async def test_a_tiny_loop_runs_through_all_its_stages() -> None:
    recipe = Recipe(num_demonstrations=120, sft_steps=4, steps=2, groups_per_step=6, group_size=3, eval_tasks=3)
    result = await run(recipe, seed=0)
    assert result["trajectories"] == 2 * 6 * 3
    assert set(result["seconds"]) == {"init", "cold_start", "evaluate_before", "rl", "evaluate_after"}
    assert all(row["n"] == 3 and 0 <= row["before"] <= 1 for row in result["domains"].values())
