"""Attacks on the kernel itself: system calls whose mistakes have let programs out before, and ways around the filter of system calls."""

from functools import partial

from tests.security.attack import Attack, Kind, of_program

_program = partial(of_program, Kind.KERNEL)

ATTACKS: tuple[Attack, ...] = (
    _program(
        "mount",
        "mounting, unmounting and remounting",
        """
        for name, result in (
            ('mount', libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)),
            ('bind', libc.mount(b'/usr', b'/tmp', None, 4096, None)),
            ('remount', libc.mount(None, b'/usr', None, 32 | 4096, None)),
            ('umount', libc.umount2(b'/proc', 2)),
        ):
            if result == 0: say(name)
        """,
    ),
    _program(
        "new_mount_calls",
        "the newer calls for the same",
        """
        for name, result in (
            ('fsopen', call(430, 430, b'tmpfs', 0)),
            ('open_tree', call(428, 428, -100, b'/', 1)),
            ('mount_setattr', call(442, 442, -100, b'/tmp', 0, bytes(32), 32)),
        ):
            if result >= 0: say(name)
        """,
    ),
    _program(
        "another_root",
        "chroot and pivot_root",
        "if libc.chroot(b'.') == 0: say('chroot')\nif call(155, 41, b'.', b'.') == 0: say('pivot_root')",
    ),
    _program(
        "user_namespace",
        "a user namespace, which makes everybody root of something",
        "if libc.unshare(0x10000000) == 0: say('unshare')",
    ),
    _program(
        "user_namespace_by_clone",
        "the same by clone",
        """
        made = call(56, 220, 0x10000000 | 17, 0, 0, 0, 0)
        if made == 0: os._exit(0)
        if made > 0: say('clone')
        """,
    ),
    _program(
        "user_namespace_by_clone3",
        "the same by clone3, whose flags no filter can see",
        """
        made = call(435, 435, struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)
        if made == 0: os._exit(0)
        if made > 0: say('clone3')
        """,
    ),
    _program(
        "other_namespaces",
        "every other kind of namespace",
        """
        for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000):
            if libc.unshare(flag) == 0: say(hex(flag))
        """,
    ),
    _program(
        "entering_namespaces",
        "entering the namespaces of another process",
        """
        for name in ('mnt', 'uts', 'net', 'ipc', 'cgroup'):
            for pid in (1, os.getppid(), os.getpid()):
                try:
                    if libc.setns(os.open(f'/proc/{pid}/ns/{name}', os.O_RDONLY), 0) == 0: say(name, pid)
                except OSError: pass
        """,
    ),
    _program(
        "io_uring",
        "io_uring, which works around filters of system calls",
        "ring = ctypes.create_string_buffer(120)\nif call(425, 425, 4, ring) >= 0: say('io_uring')",
    ),
    _program(
        "bpf",
        "programs and maps for the kernel's virtual machine",
        "if call(321, 280, 0, struct.pack('IIIII', 2, 4, 4, 1, 0) + bytes(100), 120) >= 0: say('bpf')",
    ),
    _program(
        "keyctl",
        "keys of the kernel's, which all processes of a user share",
        """
        if call(250, 219, 0, -3, 1) >= 0: say('keyctl')
        if call(248, 217, b'user', b'name', b'text', 4, -3) >= 0: say('add_key')
        """,
    ),
    _program(
        "userfaultfd",
        "userfaultfd, which stops the kernel halfway",
        "if call(323, 282, 0x80000) >= 0 or call(323, 282, 0x80001) >= 0: say('userfaultfd')",
    ),
    _program(
        "perf_events",
        "performance counters",
        "if call(298, 241, struct.pack('IIQQ', 1, 112, 0, 0) + bytes(88), 0, -1, -1, 0) >= 0: say('perf')",
    ),
    _program(
        "ptrace",
        "tracing a process of the host, the watcher, or oneself",
        """
        for pid in (H['victim_pid'], os.getppid()):
            if call(101, 117, 0x4206, pid, 0, 0) == 0:
                say('seized', pid)
                call(101, 117, 17, pid, 0, 0)
        if os.fork() == 0: os._exit(7 * (call(101, 117, 0, 0, 0, 0) == 0))
        if os.waitstatus_to_exitcode(os.wait()[1]) == 7: say('traceme')
        """,
    ),
    _program(
        "memory_of_others",
        "reading the memory of the watcher",
        """
        here = ctypes.create_string_buffer(16)
        try: start = int(open(f'/proc/{os.getppid()}/maps').read(64).split('-')[0], 16)
        except OSError: start = ctypes.addressof(here)
        ours, theirs = struct.pack('QQ', ctypes.addressof(here), 16), struct.pack('QQ', start, 16)
        if call(310, 270, os.getppid(), ours, 1, theirs, 1, 0) > 0: say('process_vm_readv')
        try:
            with open(f'/proc/{os.getppid()}/mem', 'rb+', buffering=0) as file: say('/proc/.../mem')
        except OSError: pass
        """,
    ),
    _program(
        "descriptors_of_others",
        "taking the descriptors of the watcher",
        """
        try:
            pidfd = os.pidfd_open(os.getppid())
            for number in range(8):
                if call(438, 438, pidfd, number, 0) >= 0: say('pidfd_getfd', number)
        except OSError: pass
        try:
            for name in os.listdir(f'/proc/{os.getppid()}/fd'): say('/proc/.../fd', name)
        except OSError: pass
        if call(312, 272, os.getpid(), os.getppid(), 1, 0, 0) >= 0: say('kcmp')
        """,
    ),
    _program(
        "files_by_handle",
        "opening files by their number, past every folder",
        """
        handle, mount = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128)), ctypes.c_int()
        named = call(303, 264, -100, b'.', handle, ctypes.byref(mount), 0)
        if named == 0 and call(304, 265, os.open('.', os.O_RDONLY), handle, 0) >= 0: say('opened')
        """,
    ),
    _program(
        "kernel_log",
        "the kernel's log",
        "text = ctypes.create_string_buffer(4096)\nif call(103, 116, 3, text, 4096) >= 0: say('syslog')",
    ),
    _program(
        "kernel_modules",
        "loading a module (an empty one: the call's own answer is the evidence)",
        """
        call(175, 105, b'', 0, b'')
        if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS): say('init_module', ctypes.get_errno())
        """,
    ),
    _program(
        "clock",
        "the host's clock (an impossible time: the call's own answer is the evidence)",
        """
        call(227, 112, 0, struct.pack('qq', 0, 1 << 40))
        if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS): say('clock_settime', ctypes.get_errno())
        """,
    ),
    _program(
        "host_name",
        "the host's name",
        "if libc.sethostname(b'box', 3) == 0: say('sethostname')",
    ),
    _program(
        "file_watches",
        "watching every access to a file system",
        "if call(300, 262, 0, 0) >= 0: say('fanotify')",
    ),
    _program(
        "hardware_ports",
        "input and output ports, and segments of memory (x86)",
        """
        if call(173, None, 0x80, 1, 1) == 0: say('ioperm')
        if call(172, None, 3) == 0: say('iopl')
        if call(154, None, 0, ctypes.create_string_buffer(64), 64) >= 0: say('modify_ldt')
        """,
    ),
    _program(
        "memory_policy",
        "where memory lies on the host",
        "if call(238, 237, 0, 0, 0) == 0: say('set_mempolicy')",
    ),
    _program(
        "i386_calls",
        "system calls of another architecture, whose numbers the filter reads wrongly (x86)",
        """
        if os.uname().machine == 'x86_64' and os.fork() == 0:
            import mmap
            code = mmap.mmap(-1, 4096, prot=7)
            code.write(bytes.fromhex('b814000000cd80c3'))
            place = ctypes.addressof(ctypes.c_char.from_buffer(code))
            os._exit(7 * (ctypes.CFUNCTYPE(ctypes.c_int)(place)() == os.getpid()))
        elif os.uname().machine == 'x86_64' and os.waitstatus_to_exitcode(os.wait()[1]) == 7: say('int 0x80')
        """,
    ),
    _program(
        "x32_calls",
        "system calls of the x32 variant, whose numbers the filter does not list (x86)",
        "if call(0x40000000 | 39, None) > 0: say('x32')",
    ),
    _program(
        "terminal_injection",
        "typing into a terminal",
        """
        import fcntl, termios
        try:
            top, bottom = os.openpty()
            fcntl.ioctl(bottom, termios.TIOCSTI, b'x')
            say('typed')
        except OSError: pass
        """,
    ),
    _program(
        "message_queues",
        "POSIX message queues, which are the kernel's memory",
        "if libc.mq_open(b'/queue', 0o102, 0o600, None) >= 0: say('mq_open')",
    ),
    _program(
        "inotify",
        "the host user's inotify instances, which all boxes of a machine share",
        """
        kept = []
        while len(kept) < 100 and (made := libc.inotify_init1(0)) >= 0: kept.append(made)
        if len(kept) > 16: say(len(kept))
        """,
    ),
)
