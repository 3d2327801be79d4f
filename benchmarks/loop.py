"""What the services cost: the same recipe through them (journeyman quickstart) and through examples/one_file_loop.py, in one run.

`python -m benchmarks.loop --json - [--quick]`. The two take turns, so that other load on the machine falls on both. The reinforcement
learning phase is compared by time a trajectory, since the scheduler may play more groups for a step than the one-file loop does (it plays on
until enough groups differ inside). CPU seconds are those of whole process trees, sampled; where they go is told by service.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

from benchmarks.process_tree import CpuSample, TreeWatch, cpu_between
from benchmarks.report import Metric, compared, unmeasured, write
from journeyman.quickstart.folder import RunFolder
from journeyman.quickstart.journal import Stage, read_journal, stage_costs
from journeyman.quickstart.recipe import ColdStart, Evaluation, Recipe, Reinforcement, to_toml

ROOT = Path(__file__).resolve().parent.parent
WALL_TARGET = 1.5
SERVICES = ("scheduler", "rollout", "sandbox", "verifier", "trainer", "registry")

FULL = Recipe(
    cold_start=ColdStart(num_steps=300, num_episodes=4800),
    rl=Reinforcement(num_steps=15),
    evaluation=Evaluation(tasks_per_domain=30),
)
"""The quickstart's recipe, cut short: cost a trajectory settles within a few steps."""
QUICK = Recipe(
    cold_start=ColdStart(num_steps=120, num_episodes=1800, checkpoint_every=120),
    rl=Reinforcement(
        num_steps=4, group_size=8, groups_per_step=6, min_groups=1, admission_slots=12, checkpoint_every=4
    ),
    evaluation=Evaluation(tasks_per_domain=6),
)
"""As much cold start as makes groups differ inside; with less the scheduler plays group after group that nobody can train on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run took."""

    wall_s: dict[str, float]
    """By stage."""
    total_s: float
    rl_cpu_s: dict[str, float]
    """CPU seconds of the reinforcement learning phase by program."""
    total_cpu_s: float
    trajectories: int

    @property
    def rl_wall_ms(self) -> float:
        """Wall milliseconds a trajectory."""
        return 1e3 * self.wall_s["rl"] / max(1, self.trajectories)

    @property
    def rl_cpu_ms(self) -> float:
        """CPU milliseconds a trajectory."""
        return 1e3 * sum(self.rl_cpu_s.values()) / max(1, self.trajectories)


def one_file(recipe: Recipe, seed: int, folder: Path) -> Outcome:
    """Runs the one-file loop with two torch threads."""
    result = folder / "one-file.json"
    fields = {
        "num_demonstrations": recipe.cold_start.num_episodes,
        "sft_steps": recipe.cold_start.num_steps,
        "steps": recipe.rl.num_steps,
        "groups_per_step": recipe.rl.groups_per_step,
        "group_size": recipe.rl.group_size,
        "lr": recipe.rl.learning_rate,
        "eval_tasks": recipe.evaluation.tasks_per_domain,
    }
    script = str(ROOT / "examples" / "one_file_loop.py")
    options = ["--seed", str(seed), "--recipe", json.dumps(fields), "--json", str(result)]
    total_s, samples = watched([sys.executable, script, *options], "one_file", folder)
    document = json.loads(result.read_text())
    start = float(document["started_at"]["rl"])
    return Outcome(
        wall_s=document["seconds"],
        total_s=total_s,
        rl_cpu_s=cpu_between(samples, start, start + document["seconds"]["rl"]),
        total_cpu_s=sum(samples[-1].by_program.values()),
        trajectories=document["trajectories"],
    )


def services(recipe: Recipe, seed: int, folder: Path) -> Outcome:
    """Runs the quickstart."""
    out, chosen = folder / "services", folder / "recipe.toml"
    chosen.write_text(to_toml(recipe))
    options = ["--seed", str(seed), "--config", str(chosen), "--out", str(out), "--json", str(folder / "services.json")]
    command = [sys.executable, "-m", "journeyman.cli.main", "quickstart", *options]
    total_s, samples = watched(command, "quickstart", folder)
    result = json.loads((folder / "services.json").read_text())
    evaluated = 2 * sum(domain["n"] for domain in result["domains"].values())
    entries = read_journal(RunFolder(out).journal)
    costs = stage_costs(entries)
    start = next(float(str(e["at"])) for e in entries if e["kind"] == "stage_started" and e["stage"] == Stage.RL)
    return Outcome(
        wall_s={str(stage): cost.wall_s for stage, cost in costs.items()},
        total_s=total_s,
        rl_cpu_s=cpu_between(samples, start, start + costs[Stage.RL].wall_s),
        total_cpu_s=sum(samples[-1].by_program.values()),
        trajectories=result["trajectories"] - evaluated,
    )


def watched(command: Sequence[str], name: str, folder: Path) -> tuple[float, list[CpuSample]]:
    """Runs a program to its end; its wall seconds and CPU samples. Its words go to a file, of which the end is told when it fails."""
    log = folder / f"{name}.log"
    environment = {**os.environ, "GOMP_SPINCOUNT": "100000", "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
        TreeWatch(process.pid, name) as watch,
    ):
        code = process.wait()
    if code != 0:
        raise click.ClickException(f"{name} ended with code {code}: {log.read_text()[-2000:]}")
    return time.perf_counter() - start, watch.samples


def metrics(ours: Sequence[Outcome], peers: Sequence[Outcome]) -> dict[str, Metric]:
    """Medians of the rounds beside each other, and the services' CPU by program."""

    def beside(unit: str, figure: Callable[[Outcome], float], target: float | None = None) -> Metric:
        values = median(map(figure, ours)), median(map(figure, peers))
        return compared(*values, unit=unit, against="examples/one_file_loop.py", target=target)

    report = {
        "rl_wall_per_trajectory": beside("ms", lambda outcome: outcome.rl_wall_ms, WALL_TARGET),
        "rl_cpu_per_trajectory": beside("ms", lambda outcome: outcome.rl_cpu_ms),
        "rl_wall": beside("s", lambda outcome: outcome.wall_s["rl"]),
        "rl_trajectories": beside("rollouts", lambda outcome: outcome.trajectories),
        "cold_start_wall": beside("s", lambda outcome: outcome.wall_s["cold_start"]),
        "total_wall": beside("s", lambda outcome: outcome.total_s),
        "total_cpu": beside("s", lambda outcome: outcome.total_cpu_s),
        "start_wall": Metric(value=median(outcome.wall_s["start"] for outcome in ours), unit="s"),
    }
    for name in (*SERVICES, "quickstart"):
        share = [outcome.rl_cpu_s.get(name, 0.0) / sum(outcome.rl_cpu_s.values()) for outcome in ours]
        report[f"rl_cpu_share_{name}"] = Metric(value=median(share), unit="share")
    return report


def measure(recipe: Recipe, rounds: int) -> dict[str, Metric]:
    """Runs both, by turns; a failure of the services leaves every figure unmeasured and says why."""
    ours: list[Outcome] = []
    peers: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="benchmark-loop-") as name:
        for seed in range(rounds):
            folder = Path(name) / str(seed)
            folder.mkdir()
            order = ((peers, one_file), (ours, services))
            for outcomes, run in order if seed % 2 == 0 else reversed(order):
                outcomes.append(run(recipe, seed, folder))
    return metrics(ours, peers)


@click.command()
@click.option("--json", "destination", default="-", show_default=True, help="Where the report goes; - is the screen.")
@click.option("--quick", is_flag=True, help="Everything small: the same figures in under a minute, with more noise.")
def main(destination: str, quick: bool) -> None:
    """Compares the services with the one-file loop."""
    try:
        report = measure(QUICK if quick else FULL, 1 if quick else 2)
    except click.ClickException as error:
        report = {"rl_wall_per_trajectory": unmeasured("ms", error.message, target=WALL_TARGET)}
    write("loop", report, destination)


if __name__ == "__main__":
    main()
