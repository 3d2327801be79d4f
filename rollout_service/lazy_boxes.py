"""LazyBoxes: the boxes of one group, opened together at the first tool call of any member and forked from one prepared state.

Called by the worker. Until then reading a file gives the task's own, so that an episode without tool calls costs no box.
"""

import asyncio
from collections.abc import Mapping, Sequence

from journeyman.boxes.port import Box, RunResult
from journeyman.records import TaskFile
from rollout_service.ports import BoxSource


class LazyBoxes:
    """count boxes that exist once they are needed."""

    def __init__(self, source: BoxSource, files: Sequence[TaskFile], count: int, *, key: str) -> None:
        self._source, self._files, self._count, self._key = source, files, count, key
        self._opening: asyncio.Task[Sequence[Box]] | None = None

    def box(self, place: int) -> "LazyBox":
        """The box of one member; place counts from 0."""
        return LazyBox(self, place)

    @property
    def is_open(self) -> bool:
        """Whether opening has begun."""
        return self._opening is not None

    @property
    def files(self) -> Sequence[TaskFile]:
        """What every box starts with."""
        return self._files

    async def open(self) -> Sequence[Box]:
        """All boxes. A member that is cancelled meanwhile does not cancel the opening for the others."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._source.open_group(self._files, self._count, key=self._key))
        if self._opening.done():
            return self._opening.result()
        return await asyncio.shield(self._opening)

    async def destroy(self) -> None:
        """Gives back whatever was opened."""
        if self._opening is None:
            return
        (boxes,) = await asyncio.gather(self._opening, return_exceptions=True)
        if not isinstance(boxes, BaseException):
            await self._source.destroy(boxes)


class LazyBox:
    """One member's box; see the Box port."""

    def __init__(self, group: LazyBoxes, place: int) -> None:
        self._group, self._place = group, place

    async def run_python(
        self, source: str, argv: Sequence[str] = (), *, timeout_s: float = 5.0, cpu_s: float = 2.0
    ) -> RunResult:
        return await (await self._box()).run_python(source, argv, timeout_s=timeout_s, cpu_s=cpu_s)

    async def run_command(self, argv: Sequence[str], *, timeout_s: float = 5.0, cpu_s: float = 2.0) -> RunResult:
        return await (await self._box()).run_command(argv, timeout_s=timeout_s, cpu_s=cpu_s)

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        await (await self._box()).write_files(files)

    async def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        if not self._group.is_open:
            return {file.path: file.content for file in self._group.files if file.path in paths}
        return await (await self._box()).read_files(paths)

    async def _box(self) -> Box:
        return (await self._group.open())[self._place]
