"""report.html: one self-contained page that says what was done, what came of it and what that means, with the pictures inside.

Called at the end of a quickstart.
"""

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from journeyman.quickstart.journal import Entry, JsonValue, Stage, StageCost
from journeyman.quickstart.recipe import Recipe

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733}
table{border-collapse:collapse;margin:.6rem 0}td,th{padding:.2rem .9rem .2rem 0;text-align:right}td:first-child,th:first-child{text-align:left}
th{border-bottom:1px solid #9aa7b4;font-weight:600}img{max-width:100%;display:block;margin:.6rem 0}
.note{background:#f4f1e6;padding:.6rem 1rem;border-radius:.3rem}code{background:#eef1f4;padding:0 .25rem}
"""

WHAT_IT_MEANS = (
    "The held-out tasks are new instances of known task families: the same kinds of problem with other numbers, names and files."
    " A tiny model that already solved most of them in one of sixteen tries now solves them at the first: mostly pass@16 turned into pass@1."
    " This shows that every part of the loop works together. It does not show that the model learned a new ability,"
    " and says nothing about tasks of other kinds."
)
SMOKE_MEANS = "Too few tasks and steps were asked for to say anything about learning: this run shows that the parts work together."
ENOUGH_TASKS = 50
"""Tasks a domain below which a difference is mostly noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the report says besides the result."""

    recipe: Recipe
    result: Mapping[str, JsonValue]
    costs: Mapping[Stage, StageCost]
    drops: Mapping[str, int]
    gate_promoted: bool
    gate_reason: str
    isolation: str
    num_steps: int
    """RL steps done."""
    restarts: Sequence[Entry]
    """Journal entries of services that died and were restarted."""


def render_report(facts: Facts, pictures: Mapping[str, Path]) -> str:
    """The whole page."""
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Journeyman quickstart</title>
<style>{STYLE}</style></head><body>
<h1>Journeyman quickstart, seed {facts.recipe.seed}</h1>
<h2>Held-out success</h2>
{_table(("domain", "before", "after", "change", "tasks"), _domain_rows(facts.result))}
<p class="note">{html.escape(_meaning(facts.recipe))}</p>
<p>The gate {"released" if facts.gate_promoted else "refused"} the trained policy: {html.escape(facts.gate_reason)}.</p>
{"".join(_picture(title, path) for title, path in pictures.items())}
<h2>Where the time went</h2>
{_table(("stage", "wall s", "CPU s of the services"), _cost_rows(facts.costs))}
<h2>What was counted</h2>
{_table(("", ""), _count_rows(facts))}
<h2>How it was run</h2>
<p>Isolation in force in the sandbox: <code>{html.escape(facts.isolation or "unknown")}</code>.
{len(facts.restarts)} service restarts. Six service processes on one machine, SQLite bus, folder objects.
The recipe is in <code>run.toml</code> beside this page.</p>
{_restarts(facts.restarts)}
</body></html>
"""


def _meaning(recipe: Recipe) -> str:
    return WHAT_IT_MEANS if recipe.evaluation.tasks_per_domain >= ENOUGH_TASKS else SMOKE_MEANS


def _domain_rows(result: Mapping[str, JsonValue]) -> Iterable[tuple[str, ...]]:
    domains = result["domains"]
    if not isinstance(domains, dict):
        return
    for name, scores in domains.items():
        if isinstance(scores, dict):
            before, after = scores["before"], scores["after"]
            yield name, share(before), share(after), change(before, after), str(scores["n"])


def share(value: JsonValue) -> str:
    """A share with two places, or a dash where nothing was graded."""
    return f"{value:.2f}" if isinstance(value, (int, float)) else "-"


def change(before: JsonValue, after: JsonValue) -> str:
    """The difference with its sign, or a dash."""
    if isinstance(before, (int, float)) and isinstance(after, (int, float)):
        return f"{after - before:+.2f}"
    return "-"


def _cost_rows(costs: Mapping[Stage, StageCost]) -> Iterable[tuple[str, ...]]:
    for stage, cost in costs.items():
        yield stage.value.replace("_", " "), f"{cost.wall_s:.1f}", f"{cost.cpu_s:.1f}"
    total_wall_s = sum(cost.wall_s for cost in costs.values())
    yield "all", f"{total_wall_s:.1f}", f"{sum(cost.cpu_s for cost in costs.values()):.1f}"


def _count_rows(facts: Facts) -> Iterable[tuple[str, ...]]:
    yield "RL steps", str(facts.num_steps)
    groups = facts.result["groups"]
    if isinstance(groups, dict):
        for name, count in groups.items():
            yield f"groups {name}", str(count)
    for reason, count in facts.drops.items():
        yield f"dropped: {reason.replace('_', ' ')}", str(count)
    for name in ("trajectories", "tokens", "requeued_rollouts", "lost_groups", "infra_failures_in_advantages"):
        yield name.replace("_", " "), str(facts.result[name])


def _restarts(restarts: Sequence[Entry]) -> str:
    if not restarts:
        return ""
    return "<ul>" + "".join(f"<li>{html.escape(str(entry['text']))}</li>" for entry in restarts) + "</ul>"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _picture(title: str, path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'
