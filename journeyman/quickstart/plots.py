"""The pictures of the report, as PNG files. Called once at the end, by the report; matplotlib is imported only here."""

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from journeyman.quickstart.series import Curve, Series

SIZE_INCHES = (7.0, 3.6)


def draw_plots(
    folder: Path, series: Series, before: Mapping[str, float], after: Mapping[str, float]
) -> dict[str, Path]:
    """Draws all pictures; the result maps each title to its file."""
    pictures: dict[str, tuple[str, Callable[[Axes], None]]] = {
        "Success on held-out tasks, before and after": ("before_after", lambda axes: _bars(axes, before, after)),
        "Success of recent training rollouts by domain": ("success", lambda axes: _domains(axes, series.domains)),
        "Mean reward of the groups trained on": (
            "reward",
            lambda axes: _line(axes, series.reward, "RL step", "reward"),
        ),
        "Entropy of the policy": ("entropy", lambda axes: _line(axes, series.entropy, "RL step", "nats per token")),
        "Tokens sampled": ("tokens", lambda axes: _line(axes, series.tokens, "seconds", "tokens per second")),
        "Episode-slot time by cause while training": ("slots", lambda axes: _slots(axes, series.slots)),
    }
    return {title: _save(folder / f"{name}.png", title, draw) for title, (name, draw) in pictures.items()}


def _save(path: Path, title: str, draw: Callable[[Axes], None]) -> Path:
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    draw(axes)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    return path


def _line(axes: Axes, curve: Curve, x_label: str, y_label: str) -> None:
    axes.plot(curve.x, curve.y, linewidth=1.4)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


def _domains(axes: Axes, domains: Mapping[str, Curve]) -> None:
    for name, curve in domains.items():
        axes.plot(curve.x, curve.y, label=name, linewidth=1.4)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("RL step")
    axes.set_ylabel("share solved")
    if domains:
        axes.legend(fontsize=7, frameon=False)


def _slots(axes: Axes, slots: Mapping[str, Curve]) -> None:
    for cause, curve in slots.items():
        axes.plot(curve.x, curve.y, label=cause, linewidth=1.4)
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("slot-seconds, added up")
    if slots:
        axes.legend(fontsize=7, frameon=False)


def _bars(axes: Axes, before: Mapping[str, float], after: Mapping[str, float]) -> None:
    places = range(len(before))
    axes.bar([place - 0.2 for place in places], list(before.values()), width=0.4, label="before", color="#b8c4d0")
    axes.bar(
        [place + 0.2 for place in places], [after[name] for name in before], width=0.4, label="after", color="#2f6f9f"
    )
    axes.set_xticks(list(places), list(before), fontsize=7, rotation=15)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share solved")
    axes.legend(fontsize=7, frameon=False)
