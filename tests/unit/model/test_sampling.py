"""Sampling: the right distribution, the right log-probabilities, nothing forbidden, and no dependence on the batch."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from journeyman.model.sampling import entropy, masked_logp, sample, uniforms

FORBIDDEN = (0, 1, 2, 3)


def test_frequencies_follow_the_distribution() -> None:
    logits = torch.randn(12, generator=torch.Generator().manual_seed(0))
    draws = sample(logits.expand(40_000, -1), uniforms([5] * 40_000, range(40_000)), forbidden_ids=FORBIDDEN).ids_N
    frequencies = torch.bincount(draws, minlength=12) / 40_000
    torch.testing.assert_close(frequencies, masked_logp(logits, FORBIDDEN).exp(), atol=0.01, rtol=0)


@given(st.integers(0, 2**31), st.floats(0.2, 3.0))
def test_forbidden_tokens_never_appear_and_logp_is_of_temperature_one(seed: int, temperature: float) -> None:
    logits = torch.randn((16, 20), generator=torch.Generator().manual_seed(seed)) * 3
    logits[:, :4] += 20
    drawn = sample(logits, uniforms([seed] * 16, range(16)), forbidden_ids=FORBIDDEN, temperature=temperature)
    assert drawn.ids_N.min() >= 4
    logp = masked_logp(logits, FORBIDDEN)
    torch.testing.assert_close(drawn.logp_N, logp.gather(1, drawn.ids_N[:, None])[:, 0])
    torch.testing.assert_close(drawn.entropy_N, entropy(logp))


def test_edges_of_the_unit_interval_pick_allowed_tokens() -> None:
    logits = torch.zeros((2, 8))
    drawn = sample(logits, torch.tensor([0.0, 1 - 2.0**-32], dtype=torch.float64), forbidden_ids=(0, 1, 7))
    assert drawn.ids_N.tolist() == [2, 6]


def test_greedy_takes_the_best() -> None:
    logits = torch.tensor([[9.0, 1.0, 2.0, 3.0]])
    drawn = sample(logits, torch.zeros(1, dtype=torch.float64), forbidden_ids=(0,), temperature=0.0)
    assert drawn.ids_N.tolist() == [3]
    expected = 3 - math.log(sum(math.exp(score) for score in (1, 2, 3)))
    torch.testing.assert_close(drawn.logp_N.item(), expected, atol=1e-6, rtol=0)


def test_uniforms_depend_on_seed_and_position_only() -> None:
    alone = uniforms([77], [3])
    together = uniforms([1, 77, 77], [3, 3, 4])
    assert together[1] == alone[0]
    assert len(set(together.tolist())) == 3
    many = uniforms(range(10_000), [0] * 10_000)
    assert abs(float(many.mean()) - 0.5) < 0.02
    assert 0.0 <= float(many.min()) <= float(many.max()) < 1.0


def test_entropy_has_a_finite_gradient_under_the_mask() -> None:
    logits = torch.randn((3, 8), requires_grad=True)
    entropy(masked_logp(logits, FORBIDDEN)).sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, :4] == 0).all()
