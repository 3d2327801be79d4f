"""`journeyman domain`: what domain packs are on this machine, and what their tasks look like."""

import json
from itertools import islice

import click

from journeyman.packs.load import list_packs, load_pack
from journeyman.packs.port import DomainPack
from journeyman.records import Split, Task


@click.group()
def domain() -> None:
    """Task domains: where tasks come from and how they are judged."""


@domain.command("list", epilog="Example: journeyman domain list --json")
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


@domain.command("show", epilog="Example: journeyman domain show math.tool --level 1 --count 1")
@click.argument("name")
@click.option("--level", type=int, help="Only this level.")
@click.option("--heldout", is_flag=True, help="Held-out tasks instead of training ones.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--count", type=click.IntRange(1, 100), default=3, show_default=True, help="Tasks a level.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a task and line instead of text.")
def show_command(name: str, level: int | None, heldout: bool, seed: int, count: int, as_json: bool) -> None:
    """Show a domain and some of its tasks as the model sees them."""
    pack = load_pack(name)
    split = Split.HELDOUT if heldout else Split.TRAIN
    levels = pack.spec.levels if level is None else (level,)
    tasks = [task for shown in levels for task in islice(pack.tasks(split, shown, seed), count)]
    if as_json:
        for task in tasks:
            click.echo(json.dumps(_task_document(task), ensure_ascii=False))
        return
    tools = ", ".join(tool.name for tool in tasks[0].tools) if tasks else ""
    click.echo(f"{pack.ref}: {pack.spec.summary}\ntools: {tools}; turns: {pack.spec.limits.max_turns}")
    for task in tasks:
        click.echo(f"\n{task.task_id}")
        for message in task.messages:
            click.echo("  " + message.content.replace("\n", "\n  "))


def _task_document(task: Task) -> dict[str, object]:
    return {
        "task_id": task.task_id,
        "tools": [tool.name for tool in task.tools],
        "max_turns": task.limits.max_turns,
        "messages": [{"role": message.role.value, "content": message.content} for message in task.messages],
    }


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
