"""Closed triangle meshes with one face missing and the vertices relabelled. Levels 1 to 3: tetrahedron, pyramid, octahedron.

The prompt lists the faces that are there, each as its three vertex labels; coordinates are in mesh.obj for the ladder.
"""

import random
from collections.abc import Iterator

from journeyman.packs.pack import PackIdentity
from journeyman.packs.procedural import Draft, stream, tool
from journeyman.records import Split, Task, TaskFile

from .obj import Face, Mesh, Vertex, write_obj

TOOLS = (
    tool("check", "Edges that no face closes yet."),
    tool("face", "Puts this face into the hole, instead of the last one tried.", vertices="string"),
)
MESH = "mesh.obj"

_RING: tuple[Vertex, ...] = ((1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0))
_ROOF: tuple[Face, ...] = ((1, 2, 5), (2, 3, 5), (3, 4, 5), (4, 1, 5))
_SOLIDS: dict[int, tuple[tuple[Vertex, ...], tuple[Face, ...]]] = {
    1: (((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)), ((1, 2, 3), (1, 4, 2), (2, 4, 3), (1, 3, 4))),
    2: ((*_RING, (0, 0, 1)), (*_ROOF, (1, 3, 2), (1, 4, 3))),
    3: ((*_RING, (0, 0, 1), (0, 0, -1)), (*_ROOF, (2, 1, 6), (3, 2, 6), (4, 3, 6), (1, 4, 6))),
}
"""Vertices in the order of their labels and faces, wound outward."""


def tasks(identity: PackIdentity, split: Split, level: int, seed: int) -> Iterator[Task]:
    """See journeyman.packs.procedural."""
    return stream(identity, split, level, seed, make, TOOLS)


def make(rng: random.Random, level: int) -> Draft:
    """One task."""
    vertices, solid = _SOLIDS[level]
    label = rng.sample(range(1, len(vertices) + 1), len(vertices))
    faces = [(label[a - 1], label[b - 1], label[c - 1]) for a, b, c in rng.sample(solid, len(solid))]
    *present, missing = (rotate(face, rng.randrange(3)) for face in faces)
    by_label = sorted(zip(label, vertices, strict=True))
    mesh = Mesh(vertices=tuple(vertex for _, vertex in by_label), faces=tuple(present))
    return Draft(
        prompt="mesh " + " ".join(face_text(face) for face in present),
        files=(TaskFile(path=MESH, content=write_obj(mesh)),),
        verification={"missing": missing},
    )


def rotate(face: Face, by: int) -> Face:
    """The same face, named from another corner."""
    a, b, c = face[by:] + face[:by]
    return a, b, c


def face_text(face: Face) -> str:
    """Labels are single digits."""
    return "".join(map(str, face))
