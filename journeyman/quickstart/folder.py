"""The folder of a quickstart: its layout, making it, opening it again, and leaving no trace where nothing began.

    DIR/run.toml ledger.db bus.db objects/{trajectories,policies,checkpoints}/ logs/SERVICE.jsonl plots/ report.html result.json

Called by the command. Invariants: run.toml is written first; while a quickstart runs it holds a lock on run.toml, so that no second one
writes into the same folder.
"""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

from journeyman.errors import ErrorCode, JourneymanError

OBJECT_KINDS = ("trajectories", "policies", "checkpoints")


class RunFolder:
    """One quickstart's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: list[Path] = []
        self._lock: IO[str] | None = None

    @property
    def run_toml(self) -> Path:
        """The recipe."""
        return self.path / "run.toml"

    @property
    def ledger(self) -> Path:
        """Ledger of scheduler and registry."""
        return self.path / "ledger.db"

    @property
    def bus(self) -> Path:
        """Every fact."""
        return self.path / "bus.db"

    @property
    def objects(self) -> Path:
        """Trajectories, policies, checkpoints."""
        return self.path / "objects"

    @property
    def journal(self) -> Path:
        """What the quickstart itself did and saw."""
        return self.log("quickstart")

    @property
    def plots(self) -> Path:
        """Pictures of the report."""
        return self.path / "plots"

    @property
    def report(self) -> Path:
        """The report, one self-contained page."""
        return self.path / "report.html"

    @property
    def result(self) -> Path:
        """The figures, for machines."""
        return self.path / "result.json"

    def log(self, service: str) -> Path:
        """JSON lines of one service."""
        return self.path / "logs" / f"{service}.jsonl"

    def create(self, recipe_toml: str, needed_bytes: int) -> None:
        """Makes the folder with run.toml in it. INVALID_INPUT where it cannot be, with nothing left behind."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise _bad(f"{self.path} exists and is not an empty folder: choose another --out, or --resume it")
        try:
            self._make_folders()
            self._check_space(needed_bytes)
            self._write_recipe(recipe_toml)
        except OSError as error:
            self.discard()
            raise _bad(f"cannot write to {self.path}: {error.strerror}") from error
        except JourneymanError:
            self.discard()
            raise
        self._take_lock()

    def reopen(self) -> None:
        """Takes up a folder made before. INVALID_INPUT where it is none, is in use or cannot be written."""
        if not self.run_toml.is_file():
            raise _bad(f"{self.path} is not the folder of a quickstart: it has no run.toml")
        try:
            self._make_folders()
        except OSError as error:
            raise _bad(f"cannot write to {self.path}: {error.strerror}") from error
        self._take_lock()

    def discard(self) -> None:
        """Removes what create made; a folder that stood before stays, empty as it was."""
        self.release()
        if not self._made:
            return
        for entry in self.path.iterdir() if self.path.is_dir() else ():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        for folder in reversed(self._made):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self._made = []

    def release(self) -> None:
        """Lets others have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _make_folders(self) -> None:
        wanted = [self.path, *(self.objects / kind for kind in OBJECT_KINDS), self.path / "logs", self.plots]
        missing = [folder for leaf in wanted for folder in _missing(leaf)]
        for folder in missing:
            if not folder.exists():
                folder.mkdir()
                self._made.append(folder)

    def free_bytes(self) -> int:
        """Left on its disk."""
        return shutil.disk_usage(self.path).free

    def _check_space(self, needed_bytes: int) -> None:
        free_bytes = self.free_bytes()
        if free_bytes < needed_bytes:
            raise _bad(
                f"{self.path} has {free_bytes >> 20} MiB free, but this run needs about {needed_bytes >> 20} MiB:"
                " free some, or choose another --out"
            )

    def _write_recipe(self, text: str) -> None:
        write_atomically(self.run_toml, text)

    def _take_lock(self) -> None:
        lock = self.run_toml.open("r+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise _bad(f"another quickstart is running in {self.path}") from error
        self._lock = lock


def write_atomically(path: Path, text: str) -> None:
    """Readers see the old text or the new, never a part."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def default_path(seed: int, root: Path, exists: Callable[[Path], bool] = Path.exists) -> Path:
    """runs/quickstart-SEED below root, with -2, -3, ... after it where that is taken."""
    first = root / "runs" / f"quickstart-{seed}"
    number, path = 1, first
    while exists(path):
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path


def _missing(leaf: Path) -> list[Path]:
    """leaf and its parents that do not exist, outermost first."""
    missing: list[Path] = []
    while not leaf.exists():
        missing.append(leaf)
        leaf = leaf.parent
    return missing[::-1]


def _bad(message: str) -> JourneymanError:
    return JourneymanError(ErrorCode.INVALID_INPUT, message)
