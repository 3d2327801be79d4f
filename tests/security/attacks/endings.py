"""Attacks by programs that do not end: deaf, stopped, detached, or beyond the lease of their box."""

from functools import partial

from tests.security.attack import RAN_ON, Attack, Kind, Outcome, Refused, Scene, loot_of, of_plan, of_program

_program = partial(of_program, Kind.TIME)
_plan = partial(of_plan, Kind.TIME)
_DEAF = "for number in (1, 2, 15, 24): signal.signal(number, signal.SIG_IGN)\n"
_SHORT_S = 0.7
_DAEMONS_LEFT = """
for line in open('pids').read().split():
    try: state = open(f'/proc/{line}/stat').read().rpartition(')')[2].split()[0]
    except OSError: continue
    if state not in 'ZX': say('lives on', state)
"""


def _daemon(name: str, what: str, source: str) -> Attack:
    """source writes the pids of what it leaves behind to the file pids."""

    async def plan(scene: Scene) -> Outcome:
        seen = await scene.cell.run(source)
        left = await scene.cell.run(_DAEMONS_LEFT)
        return Outcome(loot=loot_of(seen) or loot_of(left), ending=seen.ending)

    plan.__name__ = name
    return _plan(what)(plan)


def _detached(body: str) -> str:
    """A daemon by double fork that has told its pid when its grandparent ends."""
    return f"""
there, here = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open('pids', 'w') as file: file.write(str(os.getpid()))
        os.write(here, b'.')
        os.closerange(0, 200)
        {body}
        os._exit(0)
    os._exit(0)
os.read(there, 1)
"""


_HOPPING = """
there, here = os.pipe()
if os.fork() == 0:
    os.setsid()
    until = time.monotonic() + 2
    os.write(here, b'.')
    os.closerange(0, 200)
    while time.monotonic() < until:
        if os.fork(): os._exit(0)
        with open('pids', 'a') as file: file.write(f'{os.getpid()}\\n')
        time.sleep(0.002)
    time.sleep(3)
    os._exit(0)
os.read(there, 1)
time.sleep(0.1)
"""
_REAPER = """libc.prctl(36, 1, 0, 0, 0)
        libc.prctl(1, 0, 0, 0, 0)
        if os.fork() == 0: time.sleep(9)
        time.sleep(9)"""


@_plan("a box used beyond its lease", endings=())
async def surviving_the_lease(scene: Scene) -> Outcome:
    try:
        cell = await scene.open(lease_s=1.0)
        seen = await cell.run(_DEAF + "time.sleep(4)\nsay('outlived')", timeout_s=6.0)
        again = await cell.run("say('still there')")
    except Refused:
        return Outcome(loot="")
    return Outcome(loot=seen.stdout.strip() or again.stdout.strip())


@_plan("a program that stops itself, so that no signal it could handle reaches it", endings=("wall_timeout",))
async def stopped(scene: Scene) -> Outcome:
    seen = await scene.cell.run("os.kill(os.getpid(), signal.SIGSTOP)\nsay('went on')", _SHORT_S)
    return Outcome(loot=loot_of(seen) if seen.ending == RAN_ON else seen.stdout.strip(), ending=seen.ending)


ATTACKS: tuple[Attack, ...] = (
    _program(
        "deaf_loop",
        "a loop that ignores SIGTERM and SIGXCPU",
        _DEAF + "while time.process_time() < 1.6: pass\nsay('outlived')",
        endings=("cpu_timeout",),
        cpu_s=0.5,
    ),
    _program(
        "deaf_sleep",
        "a sleeper that ignores SIGTERM",
        _DEAF + "time.sleep(2.5)\nsay('outlived')",
        endings=("wall_timeout",),
        timeout_s=_SHORT_S,
    ),
    _program(
        "many_loops",
        "several loops, each below its own limit",
        """
        children = [os.fork() for _ in range(2)]
        while time.process_time() < 0.8: pass
        if 0 in children: os._exit(0)
        for _ in children: os.wait()
        say('outlived')
        """,
        endings=("cpu_timeout",),
        cpu_s=1.0,
    ),
    _program(
        "closed_streams",
        "a program that closes its streams and goes on",
        _DEAF + "file = os.dup(1)\nos.closerange(0, 3)\ntime.sleep(2.5)\nos.write(file, b'outlived')",
        endings=("wall_timeout",),
        timeout_s=_SHORT_S,
    ),
    stopped,
    _daemon("daemon", "a daemon by double fork", _detached("time.sleep(9)")),
    _daemon("stopped_daemon", "a daemon that stops itself", _detached("os.kill(os.getpid(), signal.SIGSTOP)")),
    _daemon(
        "daemon_with_its_own_reaper", "a daemon that takes over its orphans and its death signal", _detached(_REAPER)
    ),
    _daemon("hopping_daemon", "a process that forks and ends, faster than one can look", _HOPPING),
    surviving_the_lease,
)
