"""The end of a quickstart: result.json, pictures, report, and what is printed for the user. Called by the command, services already stopped."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from jm.registry.v1 import registry_pb2 as registry
from rich.console import Console
from rich.table import Table

from journeyman.quickstart.folder import RunFolder, write_atomically
from journeyman.quickstart.journal import Entry, Journal, JsonValue, Stage, read_journal, stage_costs
from journeyman.quickstart.pipeline import Outcome
from journeyman.quickstart.recipe import Recipe
from journeyman.quickstart.report import Facts, change, render_report, share
from journeyman.quickstart.result import build_result, drops_by_reason, to_json
from journeyman.quickstart.series import build_series


def finish(folder: RunFolder, recipe: Recipe, outcome: Outcome) -> dict[str, JsonValue]:
    """Writes everything that is made at the end; returns the result."""
    from journeyman.quickstart.plots import draw_plots  # matplotlib takes a second to import: only at the end

    journal = Journal(folder.journal)
    journal.append("stage_started", stage=Stage.REPORT.value)
    entries = read_journal(folder.journal)
    pictures = draw_plots(folder.plots, build_series(entries), _shares(outcome.before), _shares(outcome.after))
    journal.append("stage_ended", stage=Stage.REPORT.value)
    journal.close()
    entries = read_journal(folder.journal)
    costs = stage_costs(entries)
    result = build_result(recipe.seed, outcome, costs, folder.path)
    facts = Facts(
        recipe=recipe,
        result=result,
        costs=costs,
        drops=drops_by_reason(outcome.runs),
        gate_promoted=outcome.decision.promoted,
        gate_reason=outcome.decision.reason,
        isolation=_isolation(entries),
        num_steps=outcome.num_steps,
        restarts=[entry for entry in entries if entry["kind"] == "note" and "service" in entry],
    )
    write_atomically(folder.report, render_report(facts, pictures))
    write_atomically(folder.result, to_json(result))
    return result


def say_what_was_made(console: Console, folder: RunFolder, outcome: Outcome, result: Mapping[str, JsonValue]) -> None:
    """The table before/after, where things are, and what to type next."""
    table = Table("domain", "before", "after", "change", "tasks", title="success on held-out tasks")
    domains = result["domains"]
    for name, scores in domains.items() if isinstance(domains, dict) else ():
        if isinstance(scores, dict):
            before, after = scores["before"], scores["after"]
            table.add_row(name, share(before), share(after), change(before, after), str(scores["n"]))
    console.print(table)
    verdict = "released" if outcome.decision.promoted else "refused"
    console.print(f"the gate {verdict} the trained policy: {outcome.decision.reason}", highlight=False)
    where = shlex.quote(str(folder.path))
    console.print(
        f"\n{folder.report}  the report; plots/, result.json, logs/ and objects/ lie beside it\n\n"
        "worth typing next:\n"
        f"  journeyman trajectory show {where}     what the model did, turn by turn\n"
        "  journeyman quickstart --model PATH     the same with a model of your own (a Hugging Face folder)\n"
        "  JOURNEYMAN_DOMAINS_PATH=FOLDER journeyman domain list     your own domains; docs/add-a-domain.md",
        highlight=False,
        soft_wrap=True,
    )


def write_json(path: Path, result: Mapping[str, JsonValue]) -> None:
    """The result where --json asked for it."""
    write_atomically(path, to_json(result))


def _shares(evaluation: registry.Evaluation) -> dict[str, float]:
    return {
        score.domain: score.num_passed / score.num_graded if score.num_graded else 0.0 for score in evaluation.domains
    }


def _isolation(entries: list[Entry]) -> str:
    said = [str(entry["isolation"]) for entry in entries if entry["kind"] == "isolation"]
    return said[-1] if said else ""
