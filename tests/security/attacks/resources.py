"""Attacks on what the machine has: processes, memory, disk, files, descriptors, output. Each stops by itself at a harmless bound."""

from functools import partial

from tests.security.attack import Attack, Kind, Outcome, Scene, Seen, loot_of, of_plan, of_program

_program = partial(of_program, Kind.RESOURCES)
_plan = partial(of_plan, Kind.RESOURCES)
_MUCH_OUTPUT_CHARS = 1_000_000


def _flood(seen: Seen) -> Outcome:
    size = len(seen.stdout) + len(seen.stderr)
    return Outcome(loot=f"{size} bytes" if size > _MUCH_OUTPUT_CHARS else "", ending=seen.ending)


@_plan("output without end", endings=("output_limit",))
async def output_flood(scene: Scene) -> Outcome:
    return _flood(await scene.cell.run("for _ in range(400): os.write(1, b'x' * 65536)"))


@_plan("output without end on both streams", endings=("output_limit",))
async def output_flood_on_both(scene: Scene) -> Outcome:
    return _flood(await scene.cell.run("for n in range(400): os.write(1 + n % 2, b'x' * 65536)"))


@_plan("output by a daemon whose parent has ended", endings=("exited", "output_limit"))
async def output_flood_by_a_daemon(scene: Scene) -> Outcome:
    source = "if os.fork() == 0:\n    os.setsid()\n    for _ in range(400): os.write(1, b'x' * 65536)"
    return _flood(await scene.cell.run(source))


@_plan("a command line longer than the kernel takes")
async def huge_argv(scene: Scene) -> Outcome:
    seen = await scene.cell.command(["true", "x" * 200_000])
    return Outcome(loot=loot_of(seen) if seen.ending != "exited" else "", ending=seen.ending)


ATTACKS: tuple[Attack, ...] = (
    _program(
        "fork_bomb",
        "one process that forks many",
        """
        children = []
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                time.sleep(9)
                os._exit(0)
            children.append(pid)
        say(len(children), 'processes')
        for pid in children: os.kill(pid, 9)
        """,
        endings=("too_many_processes",),
    ),
    _program(
        "exponential_fork_bomb",
        "every process forks",
        """
        top, (there, here) = os.getpid(), os.pipe()
        for _ in range(7): os.fork()
        os.write(here, b'.')
        if os.getpid() != top:
            time.sleep(1)
            os._exit(0)
        time.sleep(0.4)
        os.set_blocking(there, False)
        num = len(os.read(there, 1000))
        if num >= 100: say(num, 'processes')
        """,
        endings=("too_many_processes", "exited"),
    ),
    _program(
        "patient_fork_bomb",
        "forks again and again when refused",
        """
        made, until = 0, time.monotonic() + 3
        while made < 100 and time.monotonic() < until:
            try:
                if os.fork() == 0:
                    os.closerange(0, 3)
                    time.sleep(5)
                    os._exit(0)
                made += 1
            except OSError: pass
        if made >= 100: say(made, 'processes')
        os._exit(0)
        """,
        endings=("too_many_processes", "cpu_timeout", "exited"),
        cpu_s=0.5,
    ),
    _program(
        "thread_bomb",
        "many threads",
        """
        import threading
        stop = threading.Event()
        threads = [threading.Thread(target=stop.wait, daemon=True) for _ in range(100)]
        try:
            for thread in threads: thread.start()
            say(len(threads), 'threads')
        finally: stop.set()
        """,
        endings=("too_many_processes",),
    ),
    _program(
        "memory_bomb",
        "one process takes memory",
        "hoard = []\nfor _ in range(20): hoard.append(b'x' * (16 << 20))\nsay('320 MiB')",
        endings=("out_of_memory",),
    ),
    _program(
        "memory_bomb_of_many",
        "many processes take a little each",
        """
        for _ in range(4):
            if os.fork() == 0:
                hoard = b'x' * (80 << 20)
                time.sleep(1.5)
                os._exit(0)
        ends = [os.wait()[1] for _ in range(4)]
        if not any(ends): say('320 MiB')
        os._exit(max(ends) and 137)
        """,
        endings=("out_of_memory",),
        needs="memory",
    ),
    _program(
        "memory_by_memfd",
        "memory in files that lie nowhere",
        """
        kept, piece = [], b'x' * (1 << 20)
        for _ in range(40):
            kept.append(os.memfd_create('hoard'))
            for _ in range(8): os.write(kept[-1], piece)
        say('320 MiB')
        """,
        endings=("out_of_memory",),
        needs="memory",
    ),
    _program(
        "memory_by_sysv_shm",
        "memory in System V segments that nobody has attached",
        """
        libc.shmat.restype = ctypes.c_void_p
        for _ in range(40):
            segment = libc.shmget(0, 8 << 20, 0o1600)
            place = libc.shmat(segment, None, 0)
            if segment < 0 or place == ctypes.c_void_p(-1).value: break
            ctypes.memset(place, 1, 8 << 20)
            libc.shmdt(ctypes.c_void_p(place))
        else: say('320 MiB')
        """,
        endings=("out_of_memory", "exited"),
        needs="memory",
    ),
    _program(
        "locked_memory",
        "memory that cannot be paged out",
        "place = ctypes.create_string_buffer(4 << 20)\nif libc.mlock(place, 4 << 20) == 0: say('4 MiB locked')",
    ),
    _program(
        "disk_fill",
        "one file without end",
        "with open('big', 'wb', buffering=0) as file:\n    for _ in range(64): file.write(bytes(1 << 20))\nsay('64 MiB')",
        endings=("disk_full",),
    ),
    _program(
        "disk_fill_in_parts",
        "many files, in both of the folders that can be written to",
        """
        for part in range(64):
            for folder in ('.', os.environ['TMPDIR']):
                with open(f'{folder}/part{part}', 'wb', buffering=0) as file:
                    if file.write(bytes(1 << 19)) < 1 << 19: file.write(b'x')
        say('64 MiB')
        """,
        endings=("disk_full",),
    ),
    _program(
        "disk_fill_by_deleted_files",
        "files that have no name any more",
        """
        kept = []
        for part in range(64):
            kept.append(open('gone', 'wb', buffering=0))
            os.unlink('gone')
            if kept[-1].write(bytes(1 << 20)) < 1 << 20: kept[-1].write(b'x')
        say('64 MiB')
        """,
        endings=("disk_full",),
    ),
    _program(
        "inode_fill",
        "many empty files",
        "for number in range(2000): open(f'f{number}', 'w').close()\nsay('2000 files')",
        endings=("disk_full",),
    ),
    _program(
        "hard_link_fill",
        "many names of one file",
        "open('one', 'w').close()\nfor number in range(2000): os.link('one', f'l{number}')\nsay('2000 names')",
        endings=("disk_full",),
    ),
    _program(
        "symlink_fill",
        "many long links, which hold the kernel's memory",
        "for number in range(2000): os.symlink('x' * 4000, f's{number}')\nsay('2000 links')",
        endings=("disk_full",),
    ),
    _program(
        "attribute_fill",
        "extended attributes, which hold the kernel's memory",
        """
        open('one', 'w').close()
        for number in range(600): os.setxattr('one', f'user.{number}', bytes(60_000))
        say('36 MB')
        """,
        endings=("disk_full", "exited"),
    ),
    _program(
        "sparse_file",
        "a file said to be huge",
        "with open('huge', 'wb') as file: file.truncate(1 << 40)\nsay(os.stat('huge').st_size)",
        endings=("disk_full",),
    ),
    _program(
        "deep_folders",
        "folders in folders in folders",
        "for _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\nsay('1500 deep')",
        endings=("disk_full",),
    ),
    _program(
        "descriptor_fill",
        "many open files",
        "kept = [os.open('/dev/null', os.O_RDONLY) for _ in range(600)]\nsay(len(kept), 'open files')",
    ),
    _program(
        "descriptors_in_flight",
        "descriptors parked in a socket, where no process holds them",
        """
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        file = os.open('/dev/null', os.O_RDONLY)
        here.setblocking(False)
        for number in range(2000 // 200):
            pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            globals()[f'pair{number}'] = pair
            socket.send_fds(pair[0], [b'x'], [file] * 200)
        say('2000 descriptors')
        """,
    ),
    _program(
        "pending_signals",
        "all the signals that may wait for the host's user",
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, [40])
        value = ctypes.c_void_p(1)
        num = 0
        while num < 20_000 and libc.sigqueue(os.getpid(), 40, value) == 0: num += 1
        if num == 20_000: say(num, 'signals')
        """,
    ),
    _program(
        "real_time",
        "a priority that leaves others no processor",
        """
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            say('real time')
        except OSError: pass
        try:
            os.nice(-5)
            say('nice')
        except OSError: pass
        """,
    ),
    output_flood,
    output_flood_on_both,
    output_flood_by_a_daemon,
    huge_argv,
)
