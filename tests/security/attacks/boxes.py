"""Attacks on other boxes of the same machine, and on the stock of boxes itself."""

import asyncio
from functools import partial

from tests.security.attack import Attack, Cell, Kind, Outcome, Refused, Scene, Seen, loot_of, of_plan

_plan = partial(of_plan, Kind.BOXES)
_ENOUGH = 40
"""More cells than the service of the tests may have alive."""


async def _beside(scene: Scene, theirs: str, ours: str, ready: str = "ready") -> tuple[Seen, Seen]:
    """Runs theirs in another box until it has made the file ready, then ours in this one; both endings."""
    other = await scene.open()
    running = asyncio.ensure_future(other.run(theirs, timeout_s=8.0))
    while not running.done() and not await _is_ready(other, running, ready):
        pass
    ours_seen = await scene.cell.run(ours)
    return await running, ours_seen


async def _is_ready(other: Cell, running: "asyncio.Future[Seen]", name: str) -> bool:
    """Files of a busy box cannot be read, so its time to start is waited for."""
    await asyncio.wait([running], timeout=0.5)
    return True


@_plan("reading and writing files of another box")
async def other_files(scene: Scene) -> Outcome:
    other = await scene.open()
    await other.write({"theirs": b"private"})
    source = """
for folder in (*glob.glob(os.getcwd() + '/../*/'), *glob.glob('/proc/[0-9]*/cwd/')):
    try:
        if os.path.samefile(folder, '.'): continue
        if os.path.exists(folder + 'theirs'): say(open(folder + 'theirs').read())
        open(folder + 'planted', 'w').close()
    except OSError: pass
"""
    seen = await scene.cell.run(source)
    planted = await other.read(["planted"])
    return Outcome(loot=loot_of(seen) or ",".join(planted), ending=seen.ending)


@_plan("killing the program of another box")
async def other_programs(scene: Scene) -> Outcome:
    theirs = "# a-marked-program\ntime.sleep(2)\nsay('whole')"
    ours = """
for path in glob.glob('/proc/[0-9]*/cmdline'):
    pid = int(path.split('/')[2])
    try:
        if pid != os.getpid() and 'a-marked-' + 'program' in open(path).read(): os.kill(pid, 9)
    except OSError: pass
"""
    other, seen = await _beside(scene, theirs, ours)
    return Outcome(loot=loot_of(seen) or ("" if "whole" in other.stdout else f"killed: {other.ending}"))


@_plan("killing whatever can be killed", alone=True)
async def kill_all(scene: Scene) -> Outcome:
    other, seen = await _beside(scene, "time.sleep(2)\nsay('whole')", "try: os.kill(-1, 9)\nexcept OSError: pass")
    return Outcome(loot=loot_of(seen) or ("" if "whole" in other.stdout else f"killed: {other.ending}"))


@_plan("System V memory of another box")
async def other_shared_memory(scene: Scene) -> Outcome:
    attach = "libc.shmat.restype = ctypes.c_void_p\nsegment = libc.shmget(0x10af, 64, {flags})\nplace = libc.shmat(segment, None, 0)\n"
    theirs = attach.format(flags="0o1666") + "ctypes.memmove(place, b'private', 8)\ntime.sleep(2)"
    ours = attach.format(flags="0") + "if segment >= 0: say(ctypes.string_at(place, 7).decode())"
    _, seen = await _beside(scene, theirs, ours)
    return Outcome(loot=loot_of(seen), ending=seen.ending)


@_plan("an abstract socket of another box")
async def other_abstract_socket(scene: Scene) -> Outcome:
    theirs = "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0of-another-box')\ns.listen()\ntime.sleep(2)"
    ours = "s = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect('\\0of-another-box')\n    say('connected')\nexcept OSError: pass"
    _, seen = await _beside(scene, theirs, ours)
    return Outcome(loot=loot_of(seen), ending=seen.ending)


@_plan("loopback of another box")
async def other_loopback(scene: Scene) -> Outcome:
    theirs = "s = socket.create_server(('127.0.0.1', 47113))\ntime.sleep(2)"
    ours = "try:\n    socket.create_connection(('127.0.0.1', 47113), 0.5)\n    say('connected')\nexcept OSError: pass"
    _, seen = await _beside(scene, theirs, ours)
    return Outcome(loot=loot_of(seen), ending=seen.ending)


@_plan("shared memory files of another box")
async def other_memory_files(scene: Scene) -> Outcome:
    other = await scene.open()
    place = "next((f for f in ('/dev/shm', H['folder']) if os.access(f, os.W_OK)), os.environ['TMPDIR'])"
    await other.run(f"open({place} + '/shared-{{}}'.format(H['tcp_port']), 'w').write('private')")
    seen = await scene.cell.run(
        f"path = {place} + '/shared-{{}}'.format(H['tcp_port'])\nif os.path.exists(path): say(open(path).read())"
    )
    return Outcome(loot=loot_of(seen), ending=seen.ending)


@_plan("the user that another box runs as")
async def shared_uid(scene: Scene) -> Outcome:
    source = "say(os.getuid(), *open('/proc/self/uid_map').read().split())"
    other = await scene.open()
    seen, theirs = await scene.cell.run(source), await other.run(source)
    return Outcome(loot=seen.stdout.strip() if seen.stdout == theirs.stdout else "", ending=seen.ending)


@_plan("boxes without end", alone=True)
async def pool_exhaustion(scene: Scene) -> Outcome:
    made = await asyncio.gather(*(scene.open() for _ in range(_ENOUGH)), return_exceptions=True)
    refused = sum(isinstance(one, Refused) for one in made)
    seen = await scene.cell.run("say('alive')")
    if seen.stdout != "alive\n":
        return Outcome(loot=f"the first box ended {seen.ending}")
    return Outcome(loot="" if refused else f"{len(made)} more boxes")


ATTACKS: tuple[Attack, ...] = (
    other_files,
    other_programs,
    kill_all,
    other_shared_memory,
    other_abstract_socket,
    other_loopback,
    other_memory_files,
    shared_uid,
    pool_exhaustion,
)
