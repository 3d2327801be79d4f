"""Meshes and the part of the OBJ format used here: `v X Y Z` and `f A B C`, whole numbers, vertices counted from 1."""

from dataclasses import dataclass

Vertex = tuple[int, int, int]
Face = tuple[int, int, int]

MAX_LINES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Vertices and triangles."""

    vertices: tuple[Vertex, ...]
    faces: tuple[Face, ...]


def write_obj(mesh: Mesh) -> bytes:
    """As a file."""
    lines = [f"v {x} {y} {z}" for x, y, z in mesh.vertices] + [f"f {a} {b} {c}" for a, b, c in mesh.faces]
    return ("\n".join(lines) + "\n").encode()


def read_obj(data: bytes) -> Mesh | None:
    """None for anything that is not such a file, or whose faces name vertices that are not there."""
    lines = data.decode("utf-8", "replace").splitlines()
    if len(lines) > MAX_LINES:
        return None
    rows: dict[str, list[tuple[int, int, int]]] = {"v": [], "f": []}
    for line in lines:
        kind, *words = line.split() or [""]
        if kind not in rows or len(words) != 3 or not all(_is_integer(word) for word in words):
            return None
        first, second, third = map(int, words)
        rows[kind].append((first, second, third))
    if any(not 1 <= label <= len(rows["v"]) for face in rows["f"] for label in face):
        return None
    return Mesh(vertices=tuple(rows["v"]), faces=tuple(rows["f"]))


def _is_integer(word: str) -> bool:
    return word.isascii() and len(word) < 10 and word.removeprefix("-").isdigit()
