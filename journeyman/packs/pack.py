"""A domain pack read from a folder: the class behind DomainPack, and what the modules of a folder must define.

Made by journeyman.packs.load only. The modules are imported as one private package each, so they may use relative imports.
"""

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from journeyman.boxes.port import Box
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.port import Demonstrator, DomainSpec, Judgement, TierContext, ToolSession
from journeyman.records import Split, Task, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class PackIdentity:
    """What tasks.py stamps on every task."""

    spec: DomainSpec
    ref: str
    """name@version+digest."""


TaskSource = Callable[[PackIdentity, Split, int, int], Iterator[Task]]
"""tasks.py: tasks(identity, split, level, seed)."""
ToolOpener = Callable[[Task, Box | None], ToolSession]
"""tools.py: open_tools(task, box)."""
Tier = Callable[[Task, Trajectory, TierContext], Awaitable[Judgement]]
"""ladder.py: TIERS maps each name in domain.toml's tiers to one of these."""
DemonstratorMaker = Callable[[Task, random.Random], Demonstrator]
"""demos.py: demonstrator(task, rng)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPack:
    """Implements DomainPack."""

    identity: PackIdentity
    task_source: TaskSource
    tool_opener: ToolOpener
    ladder: dict[str, Tier]
    demonstrators: DemonstratorMaker | None
    texts: Callable[[], Sequence[str]] | None

    @property
    def spec(self) -> DomainSpec:
        return self.identity.spec

    @property
    def ref(self) -> str:
        return self.identity.ref

    def tasks(self, split: Split, level: int, seed: int) -> Iterator[Task]:
        if level not in self.spec.levels:
            raise JourneymanError(
                ErrorCode.INVALID_INPUT, f"level {level}: {self.spec.name} has levels {list(self.spec.levels)}"
            )
        return self.task_source(self.identity, split, level, seed)

    def open_tools(self, task: Task, box: Box | None) -> ToolSession:
        return self.tool_opener(task, box)

    async def judge(self, tier: str, task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
        return await self.ladder[tier](task, trajectory, context)

    def demonstrator(self, task: Task, rng: random.Random) -> Demonstrator:
        if self.demonstrators is None:
            raise JourneymanError(ErrorCode.NOT_FOUND, f"{self.spec.name} has no demonstrations (no demos.py)")
        return self.demonstrators(task, rng)

    def vocabulary_texts(self) -> Sequence[str]:
        return self.texts() if self.texts is not None else ()
