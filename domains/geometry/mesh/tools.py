"""`check` lists the open edges; `face ABC` fills the hole with a face and says what is still wrong.

The session keeps the mesh and one face on trial. A trial that uses an edge twice in one direction is refused, others stay until the
next one.
"""

from journeyman.boxes.port import Box
from journeyman.packs.calls import BAD_CALL, read_arguments
from journeyman.packs.port import ToolResult
from journeyman.records import Task, TaskFile, ToolCall

from .obj import Face, Mesh, read_obj, write_obj
from .tasks import MESH

MAX_OPEN_SHOWN = 3
"""Edges shown after a face that did not close the mesh."""


class MeshTools:
    """Tools of one episode."""

    def __init__(self, task: Task) -> None:
        mesh = read_obj(task.files[0].content)
        if mesh is None:
            raise ValueError(f"task {task.task_id} holds no mesh")
        self._mesh = mesh
        self._trial: tuple[Face, ...] = ()

    async def call(self, call: ToolCall) -> ToolResult:
        if call.name == "check":
            return ToolResult(observation=_open_text(open_edges(self._mesh.faces)))
        arguments = read_arguments(call, "vertices")
        return BAD_CALL if arguments is None else self._try_face(arguments[0])

    async def final_files(self) -> tuple[TaskFile, ...]:
        mesh = Mesh(vertices=self._mesh.vertices, faces=self._mesh.faces + self._trial)
        return (TaskFile(path=MESH, content=write_obj(mesh)),)

    def _try_face(self, text: str) -> ToolResult:
        face = self._read_face(text)
        if face is None:
            return ToolResult(observation="bad ref")
        taken = _directed(self._mesh.faces)
        if taken & _directed((face,)):
            a, b, c = face
            is_flipped = not taken & _directed(((a, c, b),)) and not open_edges((*self._mesh.faces, (a, c, b)))
            return ToolResult(observation="flipped" if is_flipped else "overlap")
        self._trial = (face,)
        still_open = open_edges(self._mesh.faces + self._trial)
        return ToolResult(observation=_open_text(still_open[:MAX_OPEN_SHOWN]), ends_episode=not still_open)

    def _read_face(self, text: str) -> Face | None:
        if len(text) != 3 or not text.isascii() or not text.isdigit() or len(set(text)) != 3:
            return None
        a, b, c = map(int, text)
        return (a, b, c) if all(1 <= label <= len(self._mesh.vertices) for label in (a, b, c)) else None


def open_tools(task: Task, box: Box | None) -> MeshTools:
    """Tools of a new episode."""
    return MeshTools(task)


def open_edges(faces: tuple[Face, ...]) -> list[tuple[int, int]]:
    """Directed edges that a face would have to have to close the mesh, sorted."""
    directed = _directed(faces)
    return sorted((b, a) for a, b in directed if (b, a) not in directed)


def _directed(faces: tuple[Face, ...]) -> set[tuple[int, int]]:
    return {edge for a, b, c in faces for edge in ((a, b), (b, c), (c, a))}


def _open_text(edges: list[tuple[int, int]]) -> str:
    return " ".join(["open", *(f"{a}{b}" for a, b in edges)])
