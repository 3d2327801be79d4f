"""`journeyman domain`: what domain packs are on this machine, and what their tasks look like."""

import json
from itertools import islice

import click

from journeyman.packs.load import list_packs, load_pack
from journeyman.packs.port import DomainPack
from journeyman.records import Split


@click.group()
def domain() -> None:
    """Task domains: where tasks come from and how they are judged."""


@domain.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list instead of a table.")
def list_command(as_json: bool) -> None:
    """List the domains that can be trained and evaluated here."""
    packs = list_packs()
    if as_json:
        click.echo(json.dumps([_document(pack) for pack in packs], indent=2))
        return
    width = max((len(pack.spec.name) for pack in packs), default=0)
    for pack in packs:
        levels = ",".join(map(str, pack.spec.levels))
        box = "box" if pack.spec.uses_box else "   "
        click.echo(f"{pack.spec.name:{width}}  v{pack.spec.version}  levels {levels}  {box}  {pack.spec.summary}")


@domain.command("show")
@click.argument("name")
@click.option("--level", type=int, help="Only this level.")
@click.option("--heldout", is_flag=True, help="Held-out tasks instead of training ones.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--count", type=click.IntRange(1, 100), default=3, show_default=True, help="Tasks a level.")
def show_command(name: str, level: int | None, heldout: bool, seed: int, count: int) -> None:
    """Show a domain and some of its tasks as the model sees them."""
    pack = load_pack(name)
    tools = ""
    for shown in pack.spec.levels if level is None else (level,):
        for task in islice(pack.tasks(Split.HELDOUT if heldout else Split.TRAIN, shown, seed), count):
            if not tools:
                tools = ", ".join(tool.name for tool in task.tools)
                click.echo(f"{pack.ref}: {pack.spec.summary}\ntools: {tools}; turns: {task.limits.max_turns}")
            click.echo(f"\n{task.task_id}")
            for message in task.messages:
                click.echo("  " + message.content.replace("\n", "\n  "))


def _document(pack: DomainPack) -> dict[str, object]:
    spec = pack.spec
    return {
        "name": spec.name,
        "ref": pack.ref,
        "version": spec.version,
        "family": spec.family,
        "summary": spec.summary,
        "levels": list(spec.levels),
        "uses_box": spec.uses_box,
        "tiers": list(spec.tiers),
        "outcome_files": list(spec.outcome_files),
        "max_turns": spec.limits.max_turns,
    }
