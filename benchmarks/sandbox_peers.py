"""What boxes are measured against: programs without a box, and other ways of giving them one. Called by benchmarks.sandbox.

Each is a command that is run to its end; one that does not work here says why, and its figures are left out.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON = (f"{sys.prefix}/bin/python3", "-c", "print(1)")
TRUE = ("true",)
NUM_FILES, FILE_BYTES = 2_000, 10_000
_TRIAL_S = 60.0
_LITE = """
set -e
root=$1; shift
mkdir -p "$root/upper" "$root/work" "$root/merged"
mount -t tmpfs lite "$root"
mkdir "$root/upper" "$root/work" "$root/merged"
mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/merged"
mount -t proc proc "$root/merged/proc"
mount --rbind /dev "$root/merged/dev"
mount -t tmpfs tmp "$root/merged/tmp"
for group in memory pids cpu; do mkdir -p "$root/groups/$group"; done
sh -c "echo 536870912 > $root/groups/memory/limit"
sh -c "echo 64 > $root/groups/pids/max"
unshare --net --pid --fork chroot "$root/merged" "$@"
umount -l "$root/merged/tmp"
umount -l "$root/merged/dev"
umount "$root/merged/proc"
umount "$root/merged"
rm -rf "$root/groups"
umount "$root"
"""
"""Mounts, namespaces and chroot by one spawned command each, as services built on shell commands do. Files stand in for control groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A command to be timed."""

    name: str
    argv: tuple[str, ...]
    why_not: str = ""
    """Why it cannot be measured here; empty where it can."""

    def run(self) -> None:
        """To its end."""
        subprocess.run(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


def peers(folder: Path) -> Mapping[str, Peer]:
    """All, tried once. folder: for what they need on disk."""
    return {peer.name: _tried(peer) for peer in _candidates(folder)}


def make_project(folder: Path) -> Mapping[str, bytes]:
    """A project of 2,000 files and 20 MB on disk, and its files as a box takes them."""
    files = {f"part{n % 40}/file{n}.py": (f"# {n}\n" * FILE_BYTES)[:FILE_BYTES].encode() for n in range(NUM_FILES)}
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return files


def _candidates(folder: Path) -> Iterator[Peer]:
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    runsc = ["runsc", "--platform=ptrace", "--network=none", "--ignore-cgroups", "do"]
    lite = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _LITE, "sh", str(folder / "lite")]
    for name, program in (("true", TRUE), ("python", PYTHON)):
        yield Peer(name=f"bare_{name}", argv=program)
        yield _found(f"bwrap_{name}", [*bwrap, "--tmpfs", "/tmp", "--"], program)
        yield _found(f"runsc_{name}", runsc, program)
    yield _found("lite_python", lite, PYTHON)


def _found(name: str, argv: Sequence[str], program: Sequence[str]) -> Peer:
    found = shutil.which(argv[0])
    reason = "" if found else f"{argv[0]} is not on PATH"
    if argv[0] in ("runsc", "unshare") and os.geteuid() != 0:
        reason = "needs root"
    return Peer(name=name, argv=(*argv, *program), why_not=reason)


def _tried(peer: Peer) -> Peer:
    if peer.why_not:
        return peer
    try:
        done = subprocess.run(peer.argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TRIAL_S)
    except subprocess.TimeoutExpired:
        return Peer(name=peer.name, argv=peer.argv, why_not=f"does not end within {_TRIAL_S:g} s")
    reason = "" if done.returncode == 0 else f"code {done.returncode}: {done.stderr.strip()[-200:]}"
    return Peer(name=peer.name, argv=peer.argv, why_not=reason)
