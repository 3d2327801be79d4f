"""Transcript: the tokens of one episode as they come, then its Trajectory. Token-exact: nothing is decoded and encoded again.

Called by play.py. Invariant: the four arrays keep one length, and a position is sampled exactly where its version is not -1.
"""

from collections.abc import Sequence

from journeyman.records import Attribution, Step, TaskFile, ToolCall, Trajectory
from rollout_service.core.records import GroupLease, Member
from rollout_service.core.turns import FinishedTurn

NOT_SAMPLED = -1


class Transcript:
    """Grows by turns and observations."""

    def __init__(self, prompt_ids: Sequence[int]) -> None:
        self._ids: list[int] = []
        self._is_sampled: list[bool] = []
        self._logprobs: list[float] = []
        self._versions: list[int] = []
        self._steps: list[Step] = []
        self._append_given(prompt_ids)

    def __len__(self) -> int:
        return len(self._ids)

    def add_turn(self, turn: FinishedTurn) -> None:
        """Appends what was sampled; describe_turn must follow before the next one."""
        self._ids += turn.ids
        self._is_sampled += [True] * len(turn.ids)
        self._logprobs += turn.logprobs
        self._versions += turn.versions

    def describe_turn(
        self, length: int, *, text: str, call: ToolCall | None, observation: str | None, tool_s: float
    ) -> None:
        """What the last turn, of so many tokens, meant and what came back."""
        end = len(self._ids)
        self._steps.append(
            Step(start=end - length, end=end, text=text, call=call, observation=observation, tool_s=tool_s)
        )

    def add_observation(self, ids: Sequence[int]) -> None:
        """Appends what the model is shown."""
        self._append_given(ids)

    def trajectory(
        self,
        lease: GroupLease,
        member: Member,
        *,
        response: str | None,
        final_files: tuple[TaskFile, ...],
        attribution: Attribution,
        ending: str,
        wall_s: float,
    ) -> Trajectory:
        """The finished record."""
        return Trajectory(
            run_id=lease.run_id,
            group_id=lease.group_id,
            index=member.index,
            attempt=member.attempt,
            seed=member.seed,
            task=lease.task,
            token_ids=tuple(self._ids),
            is_sampled=tuple(self._is_sampled),
            logprobs=tuple(self._logprobs),
            versions=tuple(self._versions),
            steps=tuple(self._steps),
            response=response,
            final_files=final_files,
            attribution=attribution,
            ending=ending,
            wall_s=wall_s,
        )

    def _append_given(self, ids: Sequence[int]) -> None:
        self._ids += ids
        self._is_sampled += [False] * len(ids)
        self._logprobs += [0.0] * len(ids)
        self._versions += [NOT_SAMPLED] * len(ids)
