"""The gate: published golden numbers, tables of decisions, and properties that must hold for any results."""

from math import comb, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry_service.core.gate import compare_domains, verdict
from registry_service.core.paired_score import holm_rejections, non_inferiority_p
from registry_service.core.records import TaskResult


def outcome(number: int, *, passed: bool, graded: bool = True, domain: str = "math.tool") -> TaskResult:
    return TaskResult(
        group_id=f"g{number}",
        task_id=f"{domain}/heldout/1/{number}",
        domain=domain,
        graded=graded,
        passed=passed,
        score=float(passed),
    )


@pytest.mark.parametrize(
    ("only_candidate", "only_champion", "num_pairs", "margin", "expected"),
    [
        # The cross-over trial of soft contact lenses in Tango 1998: n=44, one discordant pair, Z = 1.709.
        (0, 1, 44, 0.10, 0.0438),
        # By hand: q = margin where the champion never won alone, so z = n m / sqrt(n m (1 - m)).
        (0, 0, 44, 0.10, 0.01352),
        (0, 0, 120, 0.05, 0.00598),
        # At margin 0 it is McNemar's z = (b - c) / sqrt(b + c) = 1.
        (5, 4, 100, 0.0, 0.36944),
        (25, 20, 400, 0.0, 0.22803),
    ],
)
def test_p_value_is_the_published_or_hand_computed_one(
    only_candidate: int, only_champion: int, num_pairs: int, margin: float, expected: float
) -> None:
    assert non_inferiority_p(only_candidate, only_champion, num_pairs, margin) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("num_pairs", "margin"), [(0, 0.05), (50, 0.0)])
def test_nothing_is_shown_without_pairs_or_without_disagreement_at_margin_zero(num_pairs: int, margin: float) -> None:
    assert non_inferiority_p(0, 0, num_pairs, margin) == 1.0


def test_holm_on_the_textbook_example() -> None:
    assert holm_rejections([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm_rejections([], 0.05) == []


@given(st.integers(1, 300), st.data(), st.floats(0.01, 0.5))
def test_p_value_is_a_probability_and_falls_with_every_task_the_candidate_wins(
    num_pairs: int, data: st.DataObject, margin: float
) -> None:
    won = data.draw(st.integers(0, num_pairs - 1))
    lost = data.draw(st.integers(0, num_pairs - 1 - won))
    p_value = non_inferiority_p(won, lost, num_pairs, margin)
    assert 0.0 <= p_value <= 1.0
    assert non_inferiority_p(won + 1, lost, num_pairs, margin) <= p_value + 1e-12
    assert non_inferiority_p(won, lost + 1, num_pairs, margin) >= p_value - 1e-12


@given(st.integers(0, 60), st.integers(0, 60))
def test_at_margin_zero_it_agrees_with_the_exact_sign_test_in_direction(won: int, lost: int) -> None:
    p_value = non_inferiority_p(won, lost, 200, 0.0)
    exact = sum(comb(won + lost, k) for k in range(won, won + lost + 1)) / 2 ** (won + lost)
    if won + lost >= 20:
        assert isclose(p_value, exact, abs_tol=0.12)


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.001, 0.2))
def test_holm_never_rejects_more_than_uncorrected_nor_less_than_bonferroni(p_values: list[float], alpha: float) -> None:
    rejected = holm_rejections(p_values, alpha)
    for p_value, is_rejected in zip(p_values, rejected, strict=True):
        assert not is_rejected or p_value <= alpha
        assert is_rejected or p_value > alpha / len(p_values)


def test_a_better_candidate_is_promoted() -> None:
    candidate = [outcome(n, passed=n < 90) for n in range(100)]
    champion = [outcome(n, passed=n < 40) for n in range(100)]
    (decision,) = compare_domains(["math.tool"], candidate, champion, margin=0.05, alpha=0.05)
    assert decision.difference == pytest.approx(0.5)
    assert decision.num_pairs == 100
    assert verdict([decision], margin=0.05)[0]


def test_one_domain_that_got_worse_blocks_the_promotion_and_is_named() -> None:
    candidate = [outcome(n, passed=True) for n in range(100)]
    candidate += [outcome(n, passed=n < 30, domain="code.repair") for n in range(100)]
    champion = [outcome(n, passed=False) for n in range(100)]
    champion += [outcome(n, passed=n < 60, domain="code.repair") for n in range(100)]
    decisions = compare_domains(["code.repair", "math.tool"], candidate, champion, margin=0.05, alpha=0.05)
    promoted, reason = verdict(decisions, margin=0.05)
    assert not promoted
    assert "code.repair (-0.300" in reason
    assert "math.tool" not in reason


def test_a_domain_without_pairs_fails_closed() -> None:
    (decision,) = compare_domains(["code.repair"], [], [], margin=0.05, alpha=0.05)
    assert not decision.is_non_inferior
    assert "no paired tasks" in verdict([decision], margin=0.05)[1]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60), st.data())
def test_excluded_tasks_enter_no_statistic(passes: list[tuple[bool, bool]], data: st.DataObject) -> None:
    candidate = [outcome(n, passed=mine) for n, (mine, _) in enumerate(passes)]
    champion = [outcome(n, passed=theirs) for n, (_, theirs) in enumerate(passes)]
    extra = data.draw(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=20))
    for n, (mine_graded, mine, theirs) in enumerate(extra, start=1000):
        candidate.append(outcome(n, passed=mine, graded=mine_graded))
        champion.append(outcome(n, passed=theirs, graded=not mine_graded))
    clean = compare_domains(["math.tool"], candidate[: len(passes)], champion[: len(passes)], margin=0.05, alpha=0.05)
    assert compare_domains(["math.tool"], candidate, champion, margin=0.05, alpha=0.05) == clean
