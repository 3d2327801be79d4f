"""Attacks on whoever reads and writes a box's files from outside: links, special files, paths, and folders that change meanwhile."""

import asyncio
from collections.abc import Sequence
from functools import partial

from tests.security.attack import SECRET, Attack, Cell, Hanging, Kind, Outcome, Refused, Scene, host_file, of_plan

_plan = partial(of_plan, Kind.FILES)
_TOO_LONG_BYTES = 1 << 20


async def _prepared(scene: Scene, source: str) -> None:
    await scene.cell.run(source)


async def _stolen(cell: Cell, paths: Sequence[str], mark: str = SECRET) -> Outcome:
    """What of paths is read."""
    found = []
    for path in paths:
        try:
            content = (await cell.read([path])).get(path, b"")
        except Refused:
            continue
        except Hanging:
            found.append(f"{path}: the reader hangs")
            continue
        if mark.encode() in content and content:
            found.append(path)
        elif len(content) > _TOO_LONG_BYTES:
            found.append(f"{path}: {len(content)} bytes")
    return Outcome(loot=", ".join(found))


async def _planted(scene: Scene, path: str, name: str) -> Outcome:
    """Whether writing path changes the host's file name."""
    try:
        await scene.cell.write({path: b"planted"})
    except Refused:
        pass
    except Hanging:
        return Outcome(loot="the writer hangs")
    target = host_file(scene, name)
    return Outcome(loot="planted" if target.exists() and target.read_bytes() == b"planted" else "")


@_plan("a link to an absolute path")
async def absolute_link(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink(H['witness'], 'a'); os.symlink('/etc/passwd', 'b')")
    stolen = await _stolen(scene.cell, ["a"])
    return stolen if stolen.loot else await _stolen(scene.cell, ["b"], "root:")


@_plan("a link that climbs out")
async def upward_link(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink('../' * 12 + H['witness'], 'a'); os.symlink('../' * 12 + 'etc/passwd', 'b')")
    stolen = await _stolen(scene.cell, ["a"])
    return stolen if stolen.loot else await _stolen(scene.cell, ["b"], "root:")


@_plan("a link through /proc, which leads wherever its reader is")
async def magic_link(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink('/proc/self/environ', 'a'); os.symlink('/proc/self/root' + H['witness'], 'b')")
    stolen = await _stolen(scene.cell, ["b"])
    return stolen if stolen.loot else await _stolen(scene.cell, ["a"], "PATH=")


@_plan("a folder that is a link")
async def linked_folder(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink(os.path.dirname(H['witness']), 'a'); os.symlink('/etc', 'b')")
    stolen = await _stolen(scene.cell, ["a/witness"])
    return stolen if stolen.loot else await _stolen(scene.cell, ["b/passwd"], "root:")


@_plan("a link to a link to a link")
async def chained_links(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink(H['witness'], 'c'); os.symlink('c', 'b'); os.symlink('b', 'a')")
    return await _stolen(scene.cell, ["a"])


@_plan("a hard link to a file of the host's")
async def hard_link(scene: Scene) -> Outcome:
    await _prepared(scene, "os.link(H['witness'], 'a')")
    return await _stolen(scene.cell, ["a"])


@_plan("a path with ..")
async def upward_path(scene: Scene) -> Outcome:
    return await _stolen(scene.cell, ["../" * 12 + scene.host.witness.lstrip("/"), "a/../../" * 12 + "etc/passwd"])


@_plan("an absolute path")
async def absolute_path(scene: Scene) -> Outcome:
    return await _stolen(scene.cell, [scene.host.witness])


@_plan("a FIFO, whose reader waits for ever")
async def fifo(scene: Scene) -> Outcome:
    await _prepared(scene, "os.mkfifo('a')")
    return await _stolen(scene.cell, ["a"])


@_plan("a device without end")
async def endless_device(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink('/dev/zero', 'a')")
    return await _stolen(scene.cell, ["a"])


@_plan("a file longer than its reader's memory would like")
async def long_file(scene: Scene) -> Outcome:
    await _prepared(scene, "with open('a', 'wb') as file: file.truncate(15 << 20)")
    return await _stolen(scene.cell, ["a"])


@_plan("writing through a folder that is a link")
async def write_through_folder(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink(H['folder'], 'a')")
    return await _planted(scene, "a/through-folder", "through-folder")


@_plan("writing through a file that is a link")
async def write_through_link(scene: Scene) -> Outcome:
    await _prepared(scene, "os.symlink(H['folder'] + '/through-link', 'a')")
    return await _planted(scene, "a", "through-link")


@_plan("writing to a path with ..")
async def write_upward(scene: Scene) -> Outcome:
    return await _planted(scene, "../" * 12 + scene.host.folder.lstrip("/") + "/upward", "upward")


@_plan("writing into a FIFO")
async def write_into_fifo(scene: Scene) -> Outcome:
    await _prepared(scene, "os.mkfifo('a')")
    return await _planted(scene, "a", "none")


@_plan("the working folder renamed, and a link put in its place", endings=())
async def renamed_folder(scene: Scene) -> Outcome:
    source = "here = os.getcwd()\nos.rename(here, here + '-away')\nos.symlink(os.path.dirname(H['witness']), here)"
    await _prepared(scene, source)
    return await _stolen(scene.cell, ["witness"])


@_plan("a folder that turns into a link and back while it is written to", endings=())
async def changing_folder(scene: Scene) -> Outcome:
    source = """
until, number = time.monotonic() + 1.0, 0
def quietly(what, *words):
    try: what(*words)
    except OSError: pass
while time.monotonic() < until:
    number += 1
    quietly(os.rename, 'a', f'was{number}')
    quietly(os.symlink, H['folder'], 'a')
    time.sleep(0.001)
    quietly(os.unlink, 'a')
"""
    running = asyncio.ensure_future(scene.cell.run(source))
    loot = ""
    while not running.done() and not loot:
        loot = (await _planted(scene, "a/changing", "changing")).loot
    await running
    return Outcome(loot=loot)


@_plan("a fork of a box whose files are links, hard links and links in folders")
async def fork_with_links(scene: Scene) -> Outcome:
    source = """
os.symlink(H['witness'], 'a'); os.symlink(os.path.dirname(H['witness']), 'b'); os.mkdir('c'); os.symlink('../' * 12 + H['witness'], 'c/d')
try: os.link(H['witness'], 'e')
except OSError: pass
"""
    await _prepared(scene, source)
    forked = await scene.cell.fork()
    return await _stolen(forked, ["a", "b/witness", "c/d", "e"])


@_plan("a fork of a box with a FIFO")
async def fork_with_fifo(scene: Scene) -> Outcome:
    await _prepared(scene, "os.mkfifo('a'); open('b', 'w').write('good')")
    try:
        forked = await scene.cell.fork()
    except Hanging:
        return Outcome(loot="the copier hangs")
    except Refused as error:
        return Outcome(loot=str(error))
    kept = await forked.read(["b"])
    return Outcome(loot="" if kept == {"b": b"good"} else f"lost {kept}")


@_plan("a fork of a box with a file that is said to be long")
async def fork_with_sparse_file(scene: Scene) -> Outcome:
    source = "for name in 'abcdefgh':\n    with open(name, 'wb') as file: file.truncate(15 << 20)"
    await _prepared(scene, source)
    try:
        forked = await scene.cell.fork()
        seen = await forked.run("say(sum(os.stat(name).st_blocks for name in os.listdir('.')))")
    except Refused:
        return Outcome(loot="")
    blocks = int(seen.stdout or 0)
    return Outcome(loot=f"{blocks // 2} KiB" if blocks // 2 > 16 * 1024 else "")


ATTACKS: tuple[Attack, ...] = (
    absolute_link,
    upward_link,
    magic_link,
    linked_folder,
    chained_links,
    hard_link,
    upward_path,
    absolute_path,
    fifo,
    endless_device,
    long_file,
    write_through_folder,
    write_through_link,
    write_upward,
    write_into_fifo,
    renamed_folder,
    changing_folder,
    fork_with_links,
    fork_with_fifo,
    fork_with_sparse_file,
)
