"""Attacks on the programs that come next in the same box: what a program leaves in the warm interpreter, and lies to its watcher."""

from functools import partial

from tests.security.attack import Attack, Kind, Outcome, Scene, loot_of, of_plan, of_program

_program = partial(of_program, Kind.INTERPRETER)
_plan = partial(of_plan, Kind.INTERPRETER, shares_interpreter=True)
_SPOOF = """
body = json.dumps({'status': 0, 'killed_for': '', 'note': 0, 'sizes': [7, 0]}).encode()
frame = struct.pack('=II', len(body), 7) + body + b'forged\\n'
lines = b''.join(json.dumps({'id': n, 'ending': 'exited', 'stdout': 'forged', 'stderr': ''}).encode() + b'\\n' for n in range(60))
"""


async def _left(scene: Scene, first: str, then: str) -> Outcome:
    """What the second program prints because of the first."""
    await scene.cell.run(first)
    seen = await scene.cell.run(then)
    return Outcome(loot=loot_of(seen), ending=seen.ending)


@_plan("overwritten builtins")
async def builtins(scene: Scene) -> Outcome:
    return await _left(scene, "import builtins\nbuiltins.oct = lambda _: 42", "if oct(1) == 42: say('poisoned')")


@_plan("a standard module changed")
async def modules(scene: Scene) -> Outcome:
    first = "import json, random\njson.loads = lambda _: 'poisoned'\nrandom.random = lambda: 0.5"
    return await _left(scene, first, "import random\nif random.random() == random.random(): say('poisoned')")


@_plan("a module of the working folder kept in memory")
async def kept_modules(scene: Scene) -> Outcome:
    first = "import types\nsys.modules['answers'] = types.SimpleNamespace(VALUE='old')"
    return await _left(scene, first, "try:\n    import answers\n    say(answers.VALUE)\nexcept ImportError: pass")


@_plan("a thread that goes on")
async def threads(scene: Scene) -> Outcome:
    first = "import threading\nthreading.Thread(target=lambda: (time.sleep(0.3), print('a ghost', flush=True)), daemon=True).start()"
    return await _left(scene, first, "time.sleep(0.6)")


@_plan("an alarm that is still to ring")
async def alarms(scene: Scene) -> Outcome:
    first = "def ring(*_): print('rung', flush=True)\nsignal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.3)"
    return await _left(scene, first, "time.sleep(0.6)")


@_plan("another working folder, file mask and environment")
async def surroundings(scene: Scene) -> Outcome:
    first = "os.chdir('/'); os.umask(0o777); os.environ['LEFT'] = 'x'"
    then = "if os.getcwd() == '/' or os.umask(0) == 0o777 or 'LEFT' in os.environ: say('left')"
    return await _left(scene, first, then)


@_plan("a hook that sees the next program")
async def hooks(scene: Scene) -> Outcome:
    first = "def spy(name, _):\n    if name == 'compile': os.write(1, b'')\nsys.addaudithook(spy)\nsys.spied = True"
    return await _left(scene, first, "if hasattr(sys, 'spied'): say('watched')")


@_plan("streams replaced")
async def streams(scene: Scene) -> Outcome:
    first = "import io\nsys.real, sys.stdout = sys.stdout, io.StringIO()\nsys.stdin = io.StringIO('poisoned')"
    return await _left(scene, first, "if hasattr(sys, 'real') or sys.stdin.read(): say('poisoned')")


@_plan("lowered limits of the watcher")
async def limits_of_the_watcher(scene: Scene) -> Outcome:
    first = """
import resource
for pid in (0, os.getppid()):
    try: resource.prlimit(pid, resource.RLIMIT_NOFILE, (77, 77))
    except OSError: pass
"""
    return await _left(
        scene, first, "import resource\nif resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 77: say('lowered')"
    )


ATTACKS: tuple[Attack, ...] = (
    builtins,
    modules,
    kept_modules,
    threads,
    alarms,
    surroundings,
    hooks,
    streams,
    limits_of_the_watcher,
    _program(
        "forged_result",
        "a result written to every descriptor that the program was born with",
        _SPOOF
        + """
for fd in range(3, 300):
    for text in (frame, lines):
        try: os.write(fd, text)
        except OSError: pass
""",
    ),
    _program(
        "forged_result_by_memory",
        "a result sent over the watcher's own socket, found in the interpreter's memory",
        _SPOOF
        + """
import gc
for thing in gc.get_objects():
    if isinstance(thing, socket.socket):
        try: thing.sendall(frame)
        except OSError: pass
for fd in os.listdir('/proc/self/fd'):
    if int(fd) > 2:
        try: os.write(int(fd), lines)
        except OSError: pass
""",
    ),
    _program(
        "killing_the_watcher",
        "signals to the watcher",
        "for number in (19, 15, 2, 9):\n    try: os.kill(os.getppid(), number)\n    except OSError: pass\ntime.sleep(0.1)",
    ),
    _program(
        "lowering_the_watcher",
        "the watcher's limits and priority",
        """
        import resource
        try:
            resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (200, 200))
            say('limits')
        except OSError: pass
        try:
            os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
            say('priority')
        except OSError: pass
        """,
    ),
    _program(
        "planted_module",
        "a module planted where every interpreter looks",
        "open(os.path.dirname(os.__file__) + '/planted.py', 'w').close()\nsay('planted')",
    ),
    _program(
        "planted_program",
        "a program planted on PATH, or the interpreter itself overwritten",
        """
        for folder in os.environ['PATH'].split(':'):
            if os.path.isdir(folder) and os.access(folder, os.W_OK): say(folder)
        try:
            with open(os.path.realpath(sys.executable), 'r+b') as file: say('interpreter')
        except OSError: pass
        """,
    ),
)
