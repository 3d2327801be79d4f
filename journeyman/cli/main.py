"""Entry point of the `journeyman` command. Each subcommand lives in journeyman/cli/NAME.py as the click command `NAME`.

Invariants: a subcommand's module is imported only when it is called, so `journeyman --help` costs no torch; bad input ends with one line
on standard error and exit code 2.
"""

import importlib
import sys
from typing import Any

import click

from journeyman.errors import JourneymanError

SUBCOMMANDS = {
    "domain": "The task domains: list them, look at their tasks.",
    "quickstart": "Train a small model end to end on this machine.",
    "trajectory": "What a model did, turn by turn and token by token.",
}
"""Name -> one line of help, so that listing them imports none of them."""
BAD_INPUT = 2


class LazyGroup(click.Group):
    """A group that knows its subcommands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, sorted."""
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the subcommand; None for an unknown name, which click answers with the nearest right one."""
        if cmd_name not in SUBCOMMANDS:
            return None
        attribute = cmd_name.replace("-", "_")
        command = getattr(importlib.import_module(f"journeyman.cli.{attribute}"), attribute)
        assert isinstance(command, click.Command), f"journeyman.cli.{attribute}.{attribute} must be a click command"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUBCOMMANDS[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the subcommand; a JourneymanError becomes one line and exit code 2."""
        try:
            return super().invoke(ctx)
        except JourneymanError as error:
            click.echo(f"journeyman: {error.message}", err=True)
            sys.exit(BAD_INPUT)


@click.command(cls=LazyGroup)
@click.version_option(package_name="journeyman", prog_name="journeyman")
def main() -> None:
    """Post-training of language models with reinforcement learning on verifiable tasks."""


if __name__ == "__main__":
    main()
