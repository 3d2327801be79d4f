"""The trainer's mathematics: golden vectors worked out by hand, and properties of advantages, packing and schedules."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer_service.core.advantages import DOMAIN_FLOOR, by_domain, centred
from trainer_service.core.losses import clipped_policy_loss
from trainer_service.core.optim import orthogonalised
from trainer_service.core.packing import TrainRow, micro_batches
from trainer_service.core.schedule import factor
from trainer_service.core.sft import BATCH_ROWS, batches

REWARDS = st.lists(st.floats(0, 1), min_size=2, max_size=16)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain", "is_clipped"),
    [
        (1.0, 1.0, 1.0, 0),  # on policy
        (1.2, 1.0, 1.2, 0),  # inside the range
        (1.5, 1.0, 1.28, 1),  # a good token may grow by 28 % only
        (0.5, 1.0, 0.5, 1),  # below the range a good token keeps its full gradient
        (0.5, -1.0, -0.8, 1),  # a bad token may shrink by 20 % only
        (1.5, -1.0, -1.5, 1),  # above the range a bad token keeps its full gradient
    ],
)
def test_clipped_objective_golden(ratio: float, advantage: float, gain: float, is_clipped: int) -> None:
    logp, sampled = torch.tensor([math.log(ratio) - 1.0]), torch.tensor([-1.0])
    loss = clipped_policy_loss(logp, sampled, torch.tensor([advantage]))
    assert float(loss.total) == pytest.approx(-gain, rel=1e-5)
    assert int(loss.num_clipped) == is_clipped
    assert float(loss.sum_kl) == pytest.approx(-math.log(ratio), abs=1e-6)


def test_advantages_golden() -> None:
    """Group (1, 0): centred +-.5, domain RMS .5, so +-.5 / .6; a domain of its own is scaled by itself alone."""
    ours = by_domain([("a", [1.0, 0.0]), ("b", [0.3, 0.1])])
    assert ours[0] == pytest.approx([0.5 / 0.6, -0.5 / 0.6])
    assert ours[1] == pytest.approx([0.1 / (0.1 + DOMAIN_FLOOR), -0.1 / (0.1 + DOMAIN_FLOOR)])


@given(REWARDS)
def test_advantages_of_a_group_sum_to_zero_and_keep_the_order(rewards: list[float]) -> None:
    values = centred(rewards)
    assert abs(sum(values)) < 1e-9
    assert all((a < b) <= (values[i] <= values[j]) for i, a in enumerate(rewards) for j, b in enumerate(rewards))


ROWS = st.lists(st.lists(st.tuples(st.integers(4, 99), st.booleans()), min_size=1, max_size=12), min_size=1, max_size=9)


@given(ROWS, st.integers(1, 4))
def test_packing_keeps_every_token_mask_and_logprob_aligned(raw: list[list[tuple[int, bool]]], max_rows: int) -> None:
    rows = [
        TrainRow(
            token_ids=[token for token, _ in row],
            is_sampled=[sampled for _, sampled in row],
            logprobs=[-float(token) if sampled else 0.0 for token, sampled in row],
            advantage=float(number),
        )
        for number, row in enumerate(raw)
    ]
    seen = set()
    for batch in micro_batches(rows, max_rows):
        assert len(batch.ids_BT) <= max_rows
        assert torch.equal(batch.logp_BT[batch.sampled_BT], -batch.ids_BT[batch.sampled_BT].float())
        for ids, sampled, advantage in zip(batch.ids_BT, batch.sampled_BT, batch.advantage_B, strict=True):
            row = rows[int(advantage)]
            seen.add(int(advantage))
            assert ids[: len(row.token_ids)].tolist() == row.token_ids
            assert not ids[len(row.token_ids) :].any()
            assert sampled.tolist() == [*row.is_sampled, *[False] * (len(ids) - len(row.token_ids))]
    assert seen == set(range(len(rows)))


def test_schedule_warms_up_holds_and_decays_to_its_floor() -> None:
    factors = [factor(step, 100, warmup_steps=4, decay_share=0.5, floor=0.05) for step in range(100)]
    assert factors[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert factors[4:50] == pytest.approx([1.0] * 46)
    assert factors[75] == pytest.approx(0.5)
    assert factors[99] == pytest.approx(0.05)


@pytest.mark.parametrize("shape", [(3, 16, 32), (2, 32, 16), (4, 24, 24)])
def test_muon_makes_directions_nearly_orthogonal(shape: tuple[int, int, int]) -> None:
    """Singular values go to the quintic's band, about 0.7 to 1.2, as its authors say; the very smallest need more iterations."""
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    singular = torch.linalg.svdvals(orthogonalised(matrices))
    assert singular.median() > 0.7
    assert singular.max() < 1.3


@given(st.integers(1, 2000), st.integers(1, 60), st.integers(0, 3))
def test_cold_start_batches_are_repeatable_and_cover_rows(num_rows: int, num_steps: int, seed: int) -> None:
    lengths = [row % 37 for row in range(num_rows)]
    plan = batches(num_rows, lengths, num_steps, seed)
    assert plan == batches(num_rows, lengths, num_steps, seed)
    assert len(plan) == num_steps
    assert all(0 < len(batch) <= BATCH_ROWS for batch in plan)
    assert batches(num_rows, lengths, num_steps + 5, seed)[:num_steps] == plan
