"""SandboxBoxSource: boxes of the sandbox service, one made a group and the rest forked from it."""

from collections.abc import Sequence

from journeyman.boxes.client import ClientBox, SandboxBoxes
from journeyman.boxes.port import Box
from journeyman.records import TaskFile


class SandboxBoxSource:
    """See the BoxSource port."""

    def __init__(self, boxes: SandboxBoxes, lease_s: float) -> None:
        self._boxes, self._lease_s = boxes, lease_s

    @property
    def isolation(self) -> str:
        """As the sandbox reported it with the first box."""
        return self._boxes.isolation

    async def open_group(self, files: Sequence[TaskFile], count: int, *, key: str) -> Sequence[Box]:
        """BoxFailure where the sandbox cannot give them."""
        content = {file.path: file.content for file in files}
        return await self._boxes.open_group(content, count, key=key, lease_s=self._lease_s)

    async def destroy(self, boxes: Sequence[Box]) -> None:
        """Those that open_group gave."""
        await self._boxes.destroy([box for box in boxes if isinstance(box, ClientBox)])
