"""What a quickstart looks like at one moment: the record that the sampler makes, the journal keeps and the screen shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from journeyman.quickstart.journal import Stage
from journeyman.quickstart.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One moment."""

    stage: Stage
    elapsed_s: float
    """Of this sitting."""
    left_s: float | None = None
    """Estimate; None before there is one."""
    num_done: int = 0
    """Steps or tasks of the stage done."""
    num_asked: int = 0
    """Steps or tasks of the stage; 0 where it has none."""
    unit: str = ""
    """"steps" or "tasks"."""
    domains: Mapping[str, float] = field(default_factory=dict)
    """Success by domain, 0..1: recent rollouts while training, all so far while evaluating."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Figures of the trainer's last step."""
    tokens_per_s: float = 0.0
    num_in_flight: int = 0
    """Groups."""
    num_ready: int = 0
    """Groups waiting for the trainer."""
    slot_seconds: Mapping[str, float] = field(default_factory=dict)
    """Episode-slot time by cause since the ledger began."""
    isolation: str = ""
    """In force in the sandbox; empty before it is known."""
    notes: tuple[str, ...] = ()
    """The last things worth saying, oldest first."""


def expected_s(recipe: Recipe) -> dict[Stage, float]:
    """About how long each stage takes on two free cores, from runs of the default recipe; only their proportions matter once one is done."""
    num_tasks = recipe.evaluation.tasks_per_domain * len(recipe.domains)
    rollouts_per_step = recipe.rl.groups_per_step * recipe.rl.group_size
    return {
        Stage.START: 8.0,
        Stage.INIT: 3.0,
        Stage.COLD_START: 5.0 + 0.09 * recipe.cold_start.num_steps,
        Stage.BEFORE: 3.0 + 0.012 * num_tasks,
        Stage.RL: 5.0 + 0.01 * rollouts_per_step * recipe.rl.num_steps,
        Stage.AFTER: 3.0 + 0.012 * num_tasks,
        Stage.GATE: 0.5,
        Stage.REPORT: 5.0,
    }


def time_left_s(
    expected: Mapping[Stage, float], spent: Mapping[Stage, float], stage: Stage, stage_s: float, share_done: float
) -> float:
    """What is left of this stage at its own pace, and of later ones at the pace of those that are over."""
    order = list(Stage)
    over = [earlier for earlier in order[: order.index(stage)] if earlier in spent]
    expected_over_s = sum(expected[earlier] for earlier in over)
    pace = sum(spent[earlier] for earlier in over) / expected_over_s if expected_over_s else 1.0
    own_s = stage_s / share_done if share_done > 0.05 else max(expected[stage] * pace, stage_s)
    later_s = sum(expected[later] for later in order[order.index(stage) + 1 :])
    return max(own_s - stage_s, 0.0) + later_s * pace
