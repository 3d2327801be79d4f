"""Finds and loads domain packs: those shipped in domains/, those of installed packages, and those in folders that the user names.

Called by every process that makes, plays or judges tasks. A pack is a folder <root>/<family>/<name>/ with domain.toml. Third parties ship
one as a package named in the entry-point group `journeyman.domains`, or list roots in JOURNEYMAN_DOMAINS_PATH (separated like PATH).
Two packs of one name are an error: which one judged would depend on the machine.
"""

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import cast

import journeyman
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.pack import (
    DemonstratorMaker,
    FolderPack,
    PackIdentity,
    TaskSource,
    Tier,
    ToolOpener,
)
from journeyman.packs.port import DomainPack
from journeyman.packs.toml import read_spec

ENTRY_POINT_GROUP = "journeyman.domains"
PATH_VARIABLE = "JOURNEYMAN_DOMAINS_PATH"


def load_pack(name: str) -> DomainPack:
    """The pack of that name. NOT_FOUND names the nearest one that exists."""
    folders = _folders(os.environ.get(PATH_VARIABLE, ""))
    folder = folders.get(name)
    if folder is None:
        near = get_close_matches(name, folders, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(folders))}"
        raise JourneymanError(ErrorCode.NOT_FOUND, f"no domain {name!r}{hint}")
    return load_folder(folder)


def list_packs() -> list[DomainPack]:
    """Every pack on this machine, by name."""
    folders = _folders(os.environ.get(PATH_VARIABLE, ""))
    return [load_folder(folders[name]) for name in sorted(folders)]


@cache
def load_folder(folder: Path) -> DomainPack:
    """The pack in a folder; INVALID_INPUT says which file or name is missing."""
    spec = read_spec(folder / "domain.toml")
    digest = folder_digest(folder)
    package = f"journeyman_pack_{spec.name.replace('.', '_')}_{digest[:12]}"
    _make_package(package, folder)
    tasks, tools, ladder = (_import(package, folder, name) for name in ("tasks", "tools", "ladder"))
    demos = _import(package, folder, "demos") if (folder / "demos.py").exists() else None
    tiers = cast("dict[str, Tier]", _member(ladder, "TIERS"))
    if tuple(tiers) != spec.tiers:
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"{folder}: ladder.py has tiers {list(tiers)}, domain.toml {list(spec.tiers)}"
        )
    return FolderPack(
        identity=PackIdentity(spec=spec, ref=f"{spec.name}@{spec.version}+{digest[:12]}"),
        task_source=cast(TaskSource, _member(tasks, "tasks")),
        tool_opener=cast(ToolOpener, _member(tools, "open_tools")),
        ladder=tiers,
        demonstrators=cast(DemonstratorMaker, _member(demos, "demonstrator")) if demos else None,
        texts=getattr(demos, "vocabulary_texts", None),
    )


def folder_digest(folder: Path) -> str:
    """SHA-256 over the paths and bytes of all files of a pack; caches of the interpreter do not count."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name, data = path.relative_to(folder).as_posix().encode(), path.read_bytes()
            digest.update(b"%d %b %d " % (len(name), name, len(data)) + data)
    return digest.hexdigest()


@cache
def _folders(extra_roots: str) -> dict[str, Path]:
    """Folder of each pack by name."""
    found: dict[str, Path] = {}
    for folder in _candidates(extra_roots):
        name = read_spec(folder / "domain.toml").name
        if found.setdefault(name, folder) != folder:
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"two packs are named {name}: {found[name]} and {folder}")
    return found


def _candidates(extra_roots: str) -> Iterator[Path]:
    roots = [Path(journeyman.__file__).resolve().parent.parent / "domains"]
    for text in filter(None, extra_roots.split(os.pathsep)):
        root = Path(text).resolve()
        if not root.is_dir():
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"{PATH_VARIABLE}: {text} is not a folder")
        roots.append(root)
    for root in roots:
        yield from sorted(path.parent for path in root.glob("*/*/domain.toml"))
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        module = entry.load()
        yield Path(str(module.__file__)).resolve().parent


def _make_package(name: str, folder: Path) -> None:
    """Registers the folder as an importable package without needing an __init__.py in it."""
    spec = importlib.util.spec_from_loader(name, loader=None, is_package=True)
    assert spec is not None
    spec.submodule_search_locations = [str(folder)]
    sys.modules[name] = importlib.util.module_from_spec(spec)


def _import(package: str, folder: Path, name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"{folder}/{name}.py: {error}") from error


def _member(module: ModuleType, name: str) -> object:
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"{module.__file__} defines no {name}") from error
