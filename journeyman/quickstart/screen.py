"""What the user sees: one live screen in a terminal, plain lines elsewhere. Both draw the same View and decide nothing.

Called by the session, about twice a second.
"""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from journeyman.quickstart.journal import Stage
from journeyman.quickstart.view import View

STAGE_WORDS = {
    Stage.START: "starting the services",
    Stage.INIT: "making the model",
    Stage.COLD_START: "cold start on imperfect demonstrations",
    Stage.BEFORE: "evaluating before training",
    Stage.RL: "reinforcement learning",
    Stage.AFTER: "evaluating after training",
    Stage.GATE: "release gate",
    Stage.REPORT: "writing the report",
}
LINE_EVERY_S = 10.0
BAR_WIDTH = 40


class Screen(Protocol):
    """Where views go."""

    def __enter__(self) -> "Screen": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, view: View) -> None:
        """Replaces what is shown."""
        ...


class LiveScreen:
    """The live screen."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> "LiveScreen":
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, view: View) -> None:
        """Draws the view."""
        self._live.update(draw(view), refresh=True)


class PlainScreen:
    """One line at every change of stage, at every new note, and every LINE_EVERY_S between."""

    def __init__(self, *, to_stderr: bool) -> None:
        self._to_stderr = to_stderr
        self._stage: Stage | None = None
        self._said_at = 0.0
        self._notes: tuple[str, ...] = ()

    def __enter__(self) -> "PlainScreen":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, view: View) -> None:
        """Says what is new."""
        for note in view.notes:
            if note not in self._notes:
                self._say(note)
        self._notes = view.notes
        now = time.monotonic()
        if view.stage is self._stage and now - self._said_at < LINE_EVERY_S:
            return
        self._stage, self._said_at = view.stage, now
        self._say(one_line(view))

    def _say(self, line: str) -> None:
        click.echo(line, err=self._to_stderr)


def one_line(view: View) -> str:
    """The view in one line."""
    parts = [f"{clock(view.elapsed_s)} {STAGE_WORDS[view.stage]}"]
    if view.num_asked:
        parts.append(f"{view.num_done}/{view.num_asked} {view.unit}")
    if view.domains:
        mean = sum(view.domains.values()) / len(view.domains)
        parts.append(f"success {mean:.2f} ({' '.join(f'{name} {share:.2f}' for name, share in view.domains.items())})")
    if view.tokens_per_s:
        parts.append(f"{view.tokens_per_s:.0f} tokens/s")
    if view.num_in_flight or view.num_ready:
        parts.append(f"{view.num_in_flight} groups in flight, {view.num_ready} ready")
    if view.left_s is not None:
        parts.append(f"about {clock(view.left_s)} left")
    return "; ".join(parts)


def draw(view: View) -> RenderableType:
    """The view as a panel."""
    parts: list[RenderableType] = [_progress(view)]
    if view.domains:
        parts += [Text(), _domains(view.domains)]
    parts += [Text(), _figures(view)]
    parts += [Text(note, style="yellow") for note in view.notes]
    foot = "Ctrl-C stops cleanly and keeps everything"
    if view.isolation:
        foot += f"; sandbox isolation: {view.isolation}"
    left = "" if view.left_s is None else f", about {clock(view.left_s)} left"
    return Panel(
        Group(*parts),
        title=f"journeyman quickstart: {STAGE_WORDS[view.stage]}",
        subtitle=f"{clock(view.elapsed_s)}{left} - {foot}",
    )


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    whole = max(round(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


def shares(slot_seconds: Mapping[str, float]) -> dict[str, float]:
    """Slot time by cause as shares of all, largest first."""
    total = sum(slot_seconds.values())
    if total <= 0:
        return {}
    return {
        cause: spent / total for cause, spent in sorted(slot_seconds.items(), key=lambda item: -item[1]) if spent > 0
    }


def _progress(view: View) -> RenderableType:
    row = Table.grid(padding=(0, 1))
    for stage in Stage:
        mark, style = ("●", "bold cyan") if stage is view.stage else ("○", "dim")
        if list(Stage).index(stage) < list(Stage).index(view.stage):
            mark, style = "✓", "green"
        row.add_row(Text(mark, style=style), Text(STAGE_WORDS[stage], style=style), _stage_bar(view, stage))
    return row


def _stage_bar(view: View, stage: Stage) -> RenderableType:
    if stage is not view.stage or not view.num_asked:
        return Text()
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        ProgressBar(total=view.num_asked, completed=view.num_done, width=BAR_WIDTH),
        Text(f"{view.num_done}/{view.num_asked} {view.unit}"),
    )
    return bar


def _domains(domains: Mapping[str, float]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    for name, share in domains.items():
        bar = ProgressBar(total=1.0, completed=share, width=BAR_WIDTH)
        table.add_row(Text(name), bar, Text(f"{share:.0%}", justify="right"))
    return table


def _figures(view: View) -> RenderableType:
    causes = "  ".join(f"{cause} {share:.0%}" for cause, share in shares(view.slot_seconds).items())
    table = Table.grid(padding=(0, 2))
    table.add_row("tokens/s", f"{view.tokens_per_s:.0f}")
    table.add_row("groups", f"{view.num_in_flight} in flight, {view.num_ready} ready")
    if causes:
        table.add_row("slot time", causes)
    if view.metrics:
        table.add_row("last step", "  ".join(f"{name} {value:.3g}" for name, value in list(view.metrics.items())[:6]))
    return table
