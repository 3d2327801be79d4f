"""`journeyman trajectory`: look at what a model did, turn by turn and token by token."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyVersion, Trajectory
from journeyman.trajectories import decode_group


@click.group()
def trajectory() -> None:
    """Trajectories: what the model said, what the tools answered, with which probabilities."""


@trajectory.command("show", epilog="Example: journeyman trajectory show runs/quickstart-0 --domain math.tool --tokens")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of text.")
@click.option("--domain", help="Only of this domain.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="Trajectories, newest first.")
@click.option(
    "--tokens", is_flag=True, help="Every token with its log-probability and the policy version that sampled it."
)
def show_command(path: Path, as_json: bool, domain: str | None, count: int, tokens: bool) -> None:
    """Show trajectories of PATH: a Parquet file, or a folder that holds some, such as a quickstart's."""
    chosen = list(_choose(path, domain, count))
    if not chosen:
        raise JourneymanError(ErrorCode.NOT_FOUND, f"{path}: no trajectory{f' of {domain}' if domain else ''} here")
    tokenizer = find_tokenizer(path)
    for one in chosen:
        if as_json:
            click.echo(json.dumps(document(one, tokenizer), ensure_ascii=False))
        else:
            click.echo("\n".join(lines(one, tokenizer, tokens=tokens)))


def lines(trajectory: Trajectory, tokenizer: ChatTokenizer | None, *, tokens: bool) -> Iterable[str]:
    """A trajectory for people."""
    task = trajectory.task
    yield f"{task.task_id}  rollout {trajectory.index} of group {trajectory.group_id}, attempt {trajectory.attempt}"
    yield f"ended: {trajectory.ending} ({trajectory.attribution}), {trajectory.num_sampled} tokens sampled, {trajectory.wall_s:.2f} s"
    for message in task.messages:
        yield from _block(message.role.value, message.content)
    for step in trajectory.steps:
        call = "" if step.call is None else f"   [{step.call.name} {step.call.arguments_json}]"
        mean = _mean(trajectory.logprobs[step.start : step.end])
        yield from _block("assistant", f"{step.text}{call}   (mean log-probability {mean:.2f})")
        if tokens:
            yield from _tokens(trajectory, step.start, step.end, tokenizer)
        if step.observation is not None:
            yield from _block("tool", step.observation)
    for file in trajectory.final_files:
        yield from _block(f"file {file.path}", file.content.decode(errors="replace"))
    yield ""


def document(trajectory: Trajectory, tokenizer: ChatTokenizer | None) -> dict[str, object]:
    """A trajectory for machines: turns in words, and every sampled token."""
    return {
        "run_id": trajectory.run_id,
        "group_id": trajectory.group_id,
        "index": trajectory.index,
        "attempt": trajectory.attempt,
        "task_id": trajectory.task.task_id,
        "domain": trajectory.task.domain,
        "messages": [{"role": message.role, "content": message.content} for message in trajectory.task.messages],
        "turns": [
            {
                "text": step.text,
                "call": None if step.call is None else {"name": step.call.name, "arguments": step.call.arguments_json},
                "observation": step.observation,
                "tokens": [_token(trajectory, place, tokenizer) for place in range(step.start, step.end)],
            }
            for step in trajectory.steps
        ],
        "response": trajectory.response,
        "ending": trajectory.ending,
        "attribution": trajectory.attribution,
        "wall_s": trajectory.wall_s,
    }


def find_tokenizer(path: Path) -> ChatTokenizer | None:
    """The tokenizer of the newest policy in the run that PATH belongs to; None where there is none, then tokens are numbers."""
    for folder in (path, *path.resolve().parents):
        found = sorted(
            (folder / "objects" / "policies").glob("**/tokenizer.json"), key=lambda file: file.stat().st_mtime
        )
        if found:
            return ChatTokenizer.load(found[-1].parent)
    return None


def _choose(path: Path, domain: str | None, count: int) -> Iterable[Trajectory]:
    files = [path] if path.is_file() else sorted(path.glob("**/*.parquet"), key=_written_at, reverse=True)
    for file in files:
        for trajectory in decode_group(file.read_bytes()):
            if count == 0:
                return
            if domain is None or trajectory.task.domain == domain:
                count -= 1
                yield trajectory


def _written_at(file: Path) -> tuple[float, str]:
    return file.stat().st_mtime, file.name


def _block(who: str, text: str) -> Iterable[str]:
    head, *rest = text.split("\n")
    yield f"  {who:>9} | {head}"
    for line in rest:
        yield f"  {'':>9} | {line}"


def _tokens(trajectory: Trajectory, start: int, end: int, tokenizer: ChatTokenizer | None) -> Iterable[str]:
    for place in range(start, end):
        token = _token(trajectory, place, tokenizer)
        yield f"            {token['id']:>6} {token['text']!r:<16} {token['logprob']:8.4f}  policy {token['version']}"


def _token(trajectory: Trajectory, place: int, tokenizer: ChatTokenizer | None) -> dict[str, object]:
    token_id = trajectory.token_ids[place]
    return {
        "id": token_id,
        "text": None if tokenizer is None else tokenizer.decode([token_id]),
        "logprob": round(trajectory.logprobs[place], 6),
        "version": str(PolicyVersion.unpack(trajectory.versions[place])),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
