"""Plays a pack's scripted demonstrator through a real episode, without an event loop: data for the cold start.

Called where demonstrations are made (the trainer's data step, tests). The scripts are trusted, so their programs may run in process; the
same tool code runs, so the observations are those of the sandbox. Repeatable under (task, seed).
"""

import random
import shutil
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from journeyman.boxes.inprocess import InProcessBox
from journeyman.chat.compact import render_call
from journeyman.episodes.episode import Episode
from journeyman.packs.port import DomainPack
from journeyman.records import Attribution, Message, Split, Task, TaskFile, ToolCall

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemonstratedTurn:
    """One assistant turn."""

    text: str
    """What the model is to say, in the compact format, without the closing token."""
    call: ToolCall | None
    observation: str | None
    """What came back; None on the last turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One scripted episode."""

    task: Task
    turns: tuple[DemonstratedTurn, ...]
    ending: str
    attribution: Attribution
    response: str | None
    final_files: tuple[TaskFile, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The opening conversation."""
        return self.task.messages


def demonstrate(pack: DomainPack, task: Task, seed: int, folder: Path | None = None) -> Demonstration:
    """Plays the task once. folder is emptied first and becomes the box; without one, a domain that needs a box gets a temporary folder."""
    with ExitStack() as stack:
        if not pack.spec.uses_box:
            return run_now(_play(pack, task, seed, None))
        if folder is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="demonstration-")))
        _empty(folder)
        return run_now(_play(pack, task, seed, InProcessBox(folder)))


def demonstrations(pack: DomainPack, level: int, seed: int) -> Iterator[Demonstration]:
    """Endless demonstrations of training tasks of one level, repeatable under the seed."""
    with TemporaryDirectory(prefix="demonstration-") as folder:
        for task in pack.tasks(Split.TRAIN, level, seed):
            yield demonstrate(pack, task, task.seed, Path(folder))


def run_now(coroutine: Coroutine[object, None, Result]) -> Result:
    """Result of a coroutine that never really waits; RuntimeError if it does."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a demonstration waited for something; its box must be in process")


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


async def _play(pack: DomainPack, task: Task, seed: int, box: InProcessBox | None) -> Demonstration:
    if box is not None:
        await box.write_files({file.path: file.content for file in task.files})
    episode = Episode(pack, task, box)
    player = pack.demonstrator(task, random.Random(f"{task.task_id}/{seed}"))
    turns: list[DemonstratedTurn] = []
    observation: str | None = None
    while True:
        move = player.act(observation)
        text = move if isinstance(move, str) else render_call(move, task.tools)
        turn = await episode.advance(text)
        turns.append(DemonstratedTurn(text=text, call=turn.call, observation=turn.observation))
        if turn.ending is not None and turn.attribution is not None:
            return Demonstration(
                task=task,
                turns=tuple(turns),
                ending=turn.ending,
                attribution=turn.attribution,
                response=episode.response,
                final_files=await episode.final_files(),
            )
        observation = turn.observation
