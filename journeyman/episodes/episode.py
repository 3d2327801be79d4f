"""One episode: the model speaks, a tool answers, until it is over. The only place that knows the turn protocol.

Played by rollout workers, demonstrations and the one-file loop; they own sampling, tokens and the token budget, this owns turns, tools and
the tool budget. An assistant turn is a call, or a final message that ends the episode; a malformed call costs its turn. Whether the
task was solved is for the ladder alone to say. BoxFailure passes through: then there is no ending, and no evidence.
"""

import time
from dataclasses import dataclass

from journeyman.boxes.port import Box
from journeyman.chat.compact import FinalMessage, Malformed, parse
from journeyman.packs.port import DomainPack
from journeyman.records import Attribution, Message, Task, TaskFile, ToolCall

BAD_CALL = "bad call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one assistant turn led to. Either the episode goes on with an observation, or it has an ending."""

    observation: str | None
    """Shown to the model next; None where the episode ended."""
    call: ToolCall | None
    """None for a final message, a malformed call and a turn cut short."""
    ending: str | None
    """answered | solved | turns_spent | turn_overflow | tool_cpu_spent; None while it goes on."""
    attribution: Attribution | None
    """POLICY or BUDGET where it ended."""
    tool_s: float
    """Wall seconds of the tool call."""


class Episode:
    """State of one episode. box holds the task's files already, and is None where the domain uses none."""

    def __init__(self, pack: DomainPack, task: Task, box: Box | None) -> None:
        self._task = task
        self._session = pack.open_tools(task, box)
        self._observation_chars = pack.spec.observation_chars
        self._num_turns = 0
        self._cpu_s = 0.0
        self._is_over = False
        self._response: str | None = None

    @property
    def prompt_messages(self) -> tuple[Message, ...]:
        """The conversation so far, put to the model first."""
        return self._task.messages

    @property
    def response(self) -> str | None:
        """Text of the final message; None where there was none."""
        return self._response

    @property
    def num_turns(self) -> int:
        """Assistant turns taken."""
        return self._num_turns

    async def advance(self, text: str | None, overflow: bool = False) -> Turn:
        """Takes an assistant turn (without its closing token). overflow: it was cut at max_turn_tokens, and its text does not count."""
        if self._is_over:
            raise RuntimeError("the episode is over")
        self._num_turns += 1
        if overflow or text is None:
            return self._end("turn_overflow", Attribution.POLICY)
        parsed = parse(text, self._task.tools)
        match parsed:
            case FinalMessage():
                self._response = parsed.text
                return self._end("answered", Attribution.POLICY)
            case Malformed():
                return self._go_on(BAD_CALL, None, 0.0)
            case ToolCall():
                return await self._call(parsed)

    async def final_files(self) -> tuple[TaskFile, ...]:
        """The domain's outcome files as they are now."""
        return await self._session.final_files()

    async def _call(self, call: ToolCall) -> Turn:
        started_s = time.perf_counter()
        result = await self._session.call(call)
        tool_s = time.perf_counter() - started_s
        self._cpu_s += result.cpu_s
        if result.ends_episode:
            return self._end("solved", Attribution.POLICY, call, tool_s)
        if self._cpu_s > self._task.limits.tool_cpu_s:
            return self._end("tool_cpu_spent", Attribution.BUDGET, call, tool_s)
        return self._go_on(result.observation, call, tool_s)

    def _go_on(self, observation: str, call: ToolCall | None, tool_s: float) -> Turn:
        if self._num_turns >= self._task.limits.max_turns:
            return self._end("turns_spent", Attribution.BUDGET, call, tool_s)
        shown = observation[: self._observation_chars]
        return Turn(observation=shown, call=call, ending=None, attribution=None, tool_s=tool_s)

    def _end(self, ending: str, attribution: Attribution, call: ToolCall | None = None, tool_s: float = 0.0) -> Turn:
        self._is_over = True
        return Turn(observation=None, call=call, ending=ending, attribution=attribution, tool_s=tool_s)
