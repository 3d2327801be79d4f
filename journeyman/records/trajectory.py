"""Trajectory: what one rollout did, token by token. What was sampled is what is trained on; nothing is re-tokenised.

Written by rollout workers, read by the verifier and the trainer. The arrays token_ids, is_sampled, logprobs and versions share
one length T; position t of is_sampled, logprobs and versions speaks of token t itself.
"""

from dataclasses import dataclass

from journeyman.records.attribution import Attribution
from journeyman.records.task import Task, TaskFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as parsed from the model's text."""

    name: str
    arguments_json: str
    """JSON object of the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One assistant turn and what came back."""

    start: int
    """First sampled token of the turn, index into token_ids."""
    end: int
    """One past the last sampled token of the turn."""
    text: str
    """What the model said, special tokens removed; for people and for the ladder's format tier."""
    call: ToolCall | None
    """None for a final message and for a call that could not be parsed."""
    observation: str | None
    """What the tool answered; None when the episode ended with this turn and nothing was shown."""
    tool_s: float
    """Wall seconds of the tool call; 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One completed rollout; rollouts that infrastructure ended have none."""

    run_id: str
    group_id: str
    index: int
    attempt: int
    seed: int
    task: Task
    token_ids: tuple[int, ...]
    is_sampled: tuple[bool, ...]
    """True where the policy sampled the token, False for prompt, observation and role tokens."""
    logprobs: tuple[float, ...]
    """Natural log-probability under the sampling policy at temperature 1 over allowed tokens; 0.0 where not sampled."""
    versions: tuple[int, ...]
    """PolicyVersion.pack() of the weights that sampled the token; -1 where not sampled."""
    steps: tuple[Step, ...]
    response: str | None
    """Text of the final message; None when the episode ended without one."""
    final_files: tuple[TaskFile, ...]
    """Files that the domain declares as its outcome, as they were at the end, stored before the box is destroyed."""
    attribution: Attribution
    """POLICY or BUDGET."""
    ending: str
    """answered | solved | turns_spent | tokens_spent | turn_overflow | tool_cpu_spent."""
    wall_s: float

    @property
    def num_sampled(self) -> int:
        """Sampled tokens."""
        return sum(self.is_sampled)
