"""`journeyman quickstart`: train a small model end to end on this machine.

Parses options, prepares the folder, runs one sitting, says what came of it. Bad input: one line and exit code 2, nothing left behind.
"""

import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.quickstart.finish import finish, say_what_was_made, write_json
from journeyman.quickstart.folder import RunFolder, default_path
from journeyman.quickstart.journal import JsonValue
from journeyman.quickstart.pipeline import Outcome
from journeyman.quickstart.recipe import SMOKE, Recipe, build_recipe, read_recipe, to_toml
from journeyman.quickstart.result import to_json
from journeyman.quickstart.screen import LiveScreen, PlainScreen, Screen
from journeyman.quickstart.session import Interrupted, Session, Sitting, exit_code_of

STDOUT = Path("-")
BAD_INPUT = 2
POLICY_BYTES = 4 << 20
"""Weights of the tiny model; a larger one of the user's own needs more than this guess."""
ROLLOUT_BYTES = 2 << 10
FIXED_BYTES = 48 << 20

EXAMPLE = """
\b
Examples:
  journeyman quickstart                            the default recipe, about seven minutes on two cores
  journeyman quickstart --smoke                    everything tiny, under a minute
  journeyman quickstart --seed 1 --minutes 5       another seed, training cut so that all fits into five minutes
  journeyman quickstart --model ~/my-model         start from a Hugging Face folder
  journeyman quickstart --resume runs/quickstart-0 go on where it stopped
"""


@click.command(epilog=EXAMPLE)
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Time for everything; cuts the training.")
@click.option("--seed", type=int, help="Seed of weights, tasks and sampling.  [default: 0]")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to make.  [default: runs/quickstart-SEED]")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the result here too; - prints it.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on in this folder.")
@click.option("--config", type=click.Path(path_type=Path), help="Recipe in TOML; see run.toml of any run.")
@click.option("--smoke", is_flag=True, help="Everything tiny: shows that the parts work together.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads where the model works alone.  [default: 2]")
@click.option("--model", type=click.Path(path_type=Path), help="Hugging Face folder to start from.")
@click.option(
    "--allow-weak", is_flag=True, help="Accept a sandbox without isolation; runs model-written code unconfined."
)
def quickstart(
    minutes: float | None,
    seed: int | None,
    out: Path | None,
    json_path: Path | None,
    resume: Path | None,
    config: Path | None,
    smoke: bool,
    threads: int | None,
    model: Path | None,
    allow_weak: bool,
) -> None:
    """Train a small model end to end through all services on this machine, and measure what it learned."""
    _check_json_path(json_path)
    if resume is not None:
        _refuse_with_resume(seed=seed, out=out, config=config, smoke=smoke or None, model=model)
        folder = RunFolder(resume)
        folder.reopen()
        recipe = read_recipe(folder.run_toml, Recipe())
    else:
        recipe = _recipe(seed, config, model, smoke=smoke)
        folder = RunFolder(out if out is not None else default_path(recipe.seed, Path()))
        folder.create(to_toml(recipe), _needed_bytes(recipe))
    sitting = Sitting(
        folder=folder,
        recipe=recipe,
        inherited=os.environ,
        extra=_service_options(threads, allow_weak=allow_weak),
        max_s=None if minutes is None else minutes * 60,
    )
    console = Console(stderr=json_path == STDOUT)
    _run(sitting, console, json_path, is_new=resume is None)


def _run(sitting: Sitting, console: Console, json_path: Path | None, *, is_new: bool) -> None:
    folder = sitting.folder
    console.print(f"journeyman quickstart in {folder.path}", highlight=False, soft_wrap=True)
    with _screen(console) as screen:
        session = Session(sitting, screen)
        try:
            outcome = asyncio.run(session.run())
        except Interrupted as interrupted:
            _say(f"stopped; nothing is lost: {_how_to_resume(folder)}")
            sys.exit(128 + interrupted.number)
        except JourneymanError as error:
            _end(error, folder, discard=is_new and not session.has_made_something)
    result = _finish(folder, sitting.recipe, outcome)
    say_what_was_made(console, folder, outcome, result)
    if json_path == STDOUT:
        click.echo(to_json(result), nl=False)
    elif json_path is not None:
        write_json(json_path, result)


def _finish(folder: RunFolder, recipe: Recipe, outcome: Outcome) -> dict[str, JsonValue]:
    try:
        return finish(folder, recipe, outcome)
    except OSError as error:
        _say(f"cannot write the report: {error.strerror} ({error.filename}); {_how_to_resume(folder)}")
        sys.exit(1)


def _end(error: JourneymanError, folder: RunFolder, *, discard: bool) -> NoReturn:
    """Says what went wrong in one line, and leaves no trace of a folder in which nothing was made."""
    _say(error.message)
    if discard and exit_code_of(error) == BAD_INPUT:
        folder.discard()
    else:
        _say(_how_to_resume(folder))
    sys.exit(exit_code_of(error))


def _recipe(seed: int | None, config: Path | None, model: Path | None, *, smoke: bool) -> Recipe:
    base = SMOKE if smoke else Recipe()
    recipe = base if config is None else read_recipe(config, base)
    changes: dict[str, object] = {}
    if seed is not None:
        changes["seed"] = seed
    if model is not None:
        changes["model"] = str(_checked_model(model))
    return build_recipe({**recipe.model_dump(), **changes}, "options") if changes else recipe


def _checked_model(path: Path) -> Path:
    if not path.is_dir():
        raise _bad(f"--model {path}: no such folder")
    if not (path / "config.json").is_file():
        raise _bad(f"--model {path}: not a Hugging Face model folder, it has no config.json")
    return path.resolve()


def _needed_bytes(recipe: Recipe) -> int:
    """About what a run writes: every policy's weights, some checkpoints with optimiser state, trajectories, facts and logs."""
    num_policies = recipe.rl.num_steps + recipe.cold_start.num_steps // recipe.cold_start.checkpoint_every + 4
    num_rollouts = recipe.rl.num_steps * recipe.rl.groups_per_step * recipe.rl.group_size
    return num_policies * POLICY_BYTES + num_rollouts * ROLLOUT_BYTES + FIXED_BYTES


def _service_options(threads: int | None, *, allow_weak: bool) -> dict[str, str]:
    options: dict[str, str] = {}
    if threads is not None:
        options |= {"ROLLOUT_EVAL_THREADS": str(threads), "TRAINER_SFT_THREADS": str(threads)}
    if allow_weak:
        options["SANDBOX_ALLOW_WEAK"] = "1"
    return options


def _screen(console: Console) -> Screen:
    return LiveScreen(console) if console.is_terminal else PlainScreen(to_stderr=console.stderr)


def _check_json_path(path: Path | None) -> None:
    """A place for the result that turns out to be unusable after ten minutes helps nobody."""
    if path is None or path == STDOUT:
        return
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise _bad(f"--json {path}: cannot write a file there")


def _refuse_with_resume(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise _bad(f"--{name} cannot be changed with --resume: the folder's run.toml holds")


def _how_to_resume(folder: RunFolder) -> str:
    return f"go on with: journeyman quickstart --resume {shlex.quote(str(folder.path))}"


def _say(line: str) -> None:
    click.echo(f"journeyman quickstart: {line}", err=True)


def _bad(message: str) -> JourneymanError:
    return JourneymanError(ErrorCode.INVALID_INPUT, message)
