"""format: mesh.obj holds the given mesh and one face more. rule: the whole is one closed surface, wound outward.

Independent of the tool: that one matches directed edges, this one counts undirected ones, walks the surface, takes the Euler number and
integrates the volume, whose sign is the winding.
"""

from collections import Counter

from journeyman.packs.calls import calls_of
from journeyman.packs.judgement import fail, solved, undecided
from journeyman.packs.port import Judgement, TierContext, UnjudgeableTask
from journeyman.records import Task, Trajectory

from .obj import Face, Mesh, Vertex, read_obj
from .tasks import MESH


async def check_format(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Reads the file and compares it with the one given."""
    given, mesh = _given(task), _outcome(trajectory)
    if mesh is None:
        return fail("format", f"no mesh in {MESH}", _partial(trajectory))
    if mesh.vertices != given.vertices or mesh.faces[: len(given.faces)] != given.faces:
        return fail("format", "the given part of the mesh was changed", _partial(trajectory))
    if len(mesh.faces) != len(given.faces) + 1:
        return fail("format", f"{len(mesh.faces) - len(given.faces)} faces were added, not one", _partial(trajectory))
    return undecided("format", "the given mesh and one face more")


async def check_rule(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Measures the closed surface."""
    mesh = _outcome(trajectory)
    fault = "no mesh" if mesh is None else fault_of(mesh)
    return solved("rule", "watertight") if fault is None else fail("rule", fault, _partial(trajectory))


TIERS = {"format": check_format, "rule": check_rule}


def fault_of(mesh: Mesh) -> str | None:
    """What keeps the mesh from being one closed surface wound outward; None where nothing does."""
    if any(len(set(face)) != 3 for face in mesh.faces):
        return "a face is degenerate"
    edges = Counter(frozenset(pair) for a, b, c in mesh.faces for pair in ((a, b), (b, c), (c, a)))
    wrong = sum(count != 2 for count in edges.values())
    if wrong:
        return f"{wrong} edges do not have two faces"
    used = {label for face in mesh.faces for label in face}
    if len(used) != len(mesh.vertices) or not _is_connected(mesh.faces):
        return "not one body"
    if len(used) - len(edges) + len(mesh.faces) != 2:
        return "not a sphere"
    if any(_agree(first, second) for i, first in enumerate(mesh.faces) for second in mesh.faces[:i]):
        return "winding is inconsistent"
    volume = sum(_determinant(*(mesh.vertices[label - 1] for label in face)) for face in mesh.faces)
    return None if volume > 0 else "winding is inward"


def _agree(first: Face, second: Face) -> bool:
    """Whether two faces run through a common edge in the same direction."""
    edges = [{(f[i], f[(i + 1) % 3]) for i in range(3)} for f in (first, second)]
    return bool(edges[0] & edges[1])


def _is_connected(faces: tuple[Face, ...]) -> bool:
    reached, rest = set(faces[0]), list(faces[1:])
    while rest:
        touching = [face for face in rest if reached & set(face)]
        if not touching:
            return False
        for face in touching:
            reached |= set(face)
            rest.remove(face)
    return True


def _determinant(a: Vertex, b: Vertex, c: Vertex) -> int:
    """Six times the signed volume of the tetrahedron with the origin."""
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) + a[2] * (b[0] * c[1] - b[1] * c[0])


def _given(task: Task) -> Mesh:
    mesh = read_obj(task.files[0].content) if task.files else None
    if mesh is None:
        raise UnjudgeableTask("the task holds no mesh")
    return mesh


def _outcome(trajectory: Trajectory) -> Mesh | None:
    data = next((file.content for file in trajectory.final_files if file.path == MESH), b"")
    mesh = read_obj(data)
    return mesh if mesh is not None and mesh.faces else None


def _partial(trajectory: Trajectory) -> float:
    """0.1 for looking, 0.2 for having tried a face."""
    if calls_of(trajectory, "face", "vertices"):
        return 0.2
    return 0.1 if calls_of(trajectory, "check") else 0.0
