"""Trajectories out of scripted episodes, for tests and benchmarks of what comes after playing. Their tokens are made up, one a word."""

from journeyman.episodes.demonstration import Demonstration
from journeyman.records import Attribution, Step, Task, TaskFile, ToolCall, Trajectory


def trajectory_of(
    demonstration: Demonstration, *, group_id: str = "group", index: int = 0, attempt: int = 1
) -> Trajectory:
    """What a rollout worker would have recorded of it, apart from real tokens."""
    turns = [(turn.text, turn.call, turn.observation) for turn in demonstration.turns]
    return played(
        demonstration.task,
        turns,
        response=demonstration.response,
        final_files=demonstration.final_files,
        attribution=demonstration.attribution,
        ending=demonstration.ending,
        group_id=group_id,
        index=index,
        attempt=attempt,
    )


def played(
    task: Task,
    turns: list[tuple[str, ToolCall | None, str | None]],
    *,
    response: str | None = None,
    final_files: tuple[TaskFile, ...] = (),
    attribution: Attribution = Attribution.POLICY,
    ending: str = "answered",
    group_id: str = "group",
    index: int = 0,
    attempt: int = 1,
) -> Trajectory:
    """A trajectory with these turns, each given as text, call and observation."""
    ids, steps = [1] * len(task.messages), []
    is_sampled = [False] * len(ids)
    for text, call, observation in turns:
        words = [6 + len(word) for word in text.split()] or [5]
        steps.append(
            Step(start=len(ids), end=len(ids) + len(words), text=text, call=call, observation=observation, tool_s=0.0)
        )
        ids += words
        is_sampled += [True] * len(words)
    return Trajectory(
        run_id="run",
        group_id=group_id,
        index=index,
        attempt=attempt,
        seed=index,
        task=task,
        token_ids=tuple(ids),
        is_sampled=tuple(is_sampled),
        logprobs=tuple(-0.5 if sampled else 0.0 for sampled in is_sampled),
        versions=tuple(0 if sampled else -1 for sampled in is_sampled),
        steps=tuple(steps),
        response=response,
        final_files=final_files,
        attribution=attribution,
        ending=ending,
        wall_s=0.0,
    )
