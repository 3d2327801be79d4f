"""Attacks on the host around the box: its files, processes, environment, network, devices, settings and rights."""

import asyncio
from functools import partial

from tests.security.attack import Attack, Kind, Outcome, Scene, loot_of, of_plan, of_program

_program = partial(of_program, Kind.HOST)
_plan = partial(of_plan, Kind.HOST)


@_plan("datagrams to the host's loopback")
async def host_udp(scene: Scene) -> Outcome:
    source = """
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3):
    try: there.sendto(b'ping', ('127.0.0.1', H['udp_port']))
    except OSError: pass
"""
    seen = await scene.cell.run(source)
    await asyncio.sleep(0)
    return Outcome(loot=loot_of(seen) or ",".join(scene.datagrams()), ending=seen.ending)


@_plan("signals to a process of the host", endings=("exited", "signalled"))
async def host_signals(scene: Scene) -> Outcome:
    source = "try: os.kill(H['victim_pid'], 9)\nexcept OSError: pass\ntime.sleep(0.1)"
    seen = await scene.cell.run(source)
    return Outcome(loot=loot_of(seen) or ("" if await scene.victim_lives() else "killed"), ending=seen.ending)


@_plan("a file planted in an open folder of the host")
async def host_folder(scene: Scene) -> Outcome:
    source = "try: open(H['folder'] + '/dropped', 'w').write('x')\nexcept OSError: pass"
    seen = await scene.cell.run(source)
    command = await scene.cell.run("say('there') if os.path.exists(H['folder'] + '/../witness') else None")
    return Outcome(loot=loot_of(seen) or loot_of(command), ending=seen.ending)


ATTACKS: tuple[Attack, ...] = (
    _program(
        "host_files",
        "files of the host, by their path and through every process's root",
        """
        roots = ['', *glob.glob('/proc/[0-9]*/root'), *glob.glob('/proc/[0-9]*/cwd/..')]
        for root in roots:
            for path in (H['witness'], '/etc/shadow'):
                try:
                    if open(root + path).read(): say(root + path)
                except OSError: pass
        """,
    ),
    host_folder,
    _program(
        "host_processes",
        "processes of the host in /proc",
        """
        names = [name for name in os.listdir('/proc') if name.isdigit()]
        lines = [open(f'/proc/{name}/cmdline').read() for name in names if os.path.exists(f'/proc/{name}/cmdline')]
        marks = ('sleep\\0', '-m\\0sandbox_service', 'stage.py')
        if any(mark in line for line in lines for mark in marks): say('seen')
        """,
    ),
    _program(
        "host_environment",
        "the environment of whoever made the box",
        """
        if H['secret'] in str(dict(os.environ)): say('own')
        for path in glob.glob('/proc/[0-9]*/environ'):
            try:
                if H['secret'].encode() in open(path, 'rb').read(): say(path)
            except OSError: pass
        """,
    ),
    _program(
        "host_mounts",
        "what the list of mounts tells of the host",
        """
        for line in open('/proc/self/mountinfo'):
            point = line.split()[4]
            if point.startswith(('/sys', '/run', '/boot', '/dev/shm', '/var', '/home', H['folder'])): say(point)
        """,
    ),
    _program(
        "sysfs",
        "the host's devices and drivers in /sys",
        "for path in ('/sys/kernel', '/sys/class', '/sys/fs'):\n    if os.path.exists(path): say(path)",
    ),
    _program(
        "control_groups",
        "moving to another control group",
        """
        for path in glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True)[:50]:
            try:
                file = open(path, 'a')
                say(path)
                break
            except OSError: pass
        """,
    ),
    _program(
        "host_loopback",
        "the host's loopback by TCP",
        """
        for host in ('127.0.0.1', '::1', '127.0.0.2'):
            try:
                socket.create_connection((host, H['tcp_port']), 0.5).close()
                say(host)
            except OSError: pass
        """,
    ),
    host_udp,
    _program(
        "other_interfaces",
        "network interfaces beside loopback",
        """
        others = [name for _, name in socket.if_nameindex() if name not in ('lo', 'sit0', 'tunl0', 'ip6tnl0')]
        if others: say(*others)
        """,
    ),
    _program(
        "abstract_socket",
        "an abstract socket of the host's",
        """
        there = socket.socket(socket.AF_UNIX)
        try:
            there.connect('\\0' + H['abstract'])
            say('connected')
        except OSError: pass
        """,
    ),
    _program(
        "socket_file",
        "a socket in a folder of the host's",
        """
        there = socket.socket(socket.AF_UNIX)
        try:
            there.connect(H['socket_path'])
            say('connected')
        except OSError: pass
        """,
    ),
    _program(
        "vsock",
        "AF_VSOCK, the channel to the hypervisor, which no namespace contains",
        "try:\n    socket.socket(40, socket.SOCK_STREAM).close()\n    say('vsock')\nexcept OSError: pass",
    ),
    _program(
        "raw_sockets",
        "raw and packet sockets",
        """
        for family, kind, number in ((2, 3, 1), (2, 3, 255), (10, 3, 58), (17, 3, 0x300), (17, 2, 0x300)):
            try:
                socket.socket(family, kind, number).close()
                say(family, kind, number)
            except OSError: pass
        """,
    ),
    _program(
        "netlink",
        "netlink sockets, which configure the network",
        """
        for number in (0, 9, 15, 16):
            try:
                socket.socket(16, 3, number).close()
                say('netlink', number)
            except OSError: pass
        """,
    ),
    _program(
        "strange_sockets",
        "the rest of the families of sockets",
        """
        for family in set(range(3, 46)) - {10, 16, 17, 40}:
            for kind in (1, 2, 3, 5):
                try:
                    socket.socket(family, kind).close()
                    say(family, kind)
                    break
                except OSError: pass
        """,
    ),
    host_signals,
    _program(
        "host_root",
        "the uid of the host's root",
        """
        inside, outside, num = open('/proc/self/uid_map').read().split()[:3]
        if os.getuid() == 0: say('root here')
        for uid in (0, 1):
            try:
                os.setuid(uid)
                say('setuid', uid)
            except OSError: pass
        """,
    ),
    _program(
        "groups",
        "groups of the host's",
        """
        for what in (lambda: os.setgroups([0, 6]), lambda: os.setgid(6)):
            try:
                what()
                say('group')
            except OSError: pass
        """,
    ),
    _program(
        "capabilities",
        "capabilities, now or by executing a program",
        """
        facts = dict(line.split(':', 1) for line in open('/proc/self/status'))
        for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'):
            if int(facts[name], 16): say(name, facts[name].strip())
        """,
    ),
    _program(
        "set_uid_programs",
        "set-user-id programs",
        """
        if libc.prctl(39, 0, 0, 0, 0) == 0:
            for path in ('/usr/bin/su', '/usr/bin/passwd', '/usr/bin/mount', '/usr/bin/sudo', '/usr/bin/chfn'):
                if os.path.exists(path) and os.stat(path).st_mode & 0o4000 and not os.statvfs(path).f_flag & os.ST_NOSUID: say(path)
        """,
    ),
    _program(
        "device_files",
        "making a device",
        "try:\n    os.mknod('device', 0o20666, os.makedev(1, 3))\n    say('device')\nexcept OSError: pass",
    ),
    _program(
        "host_devices",
        "devices of the host's",
        """
        wanted = ('kvm', 'mem', 'port', 'kmsg', 'fuse', 'net/tun', 'vhost-vsock', 'vsock', 'loop0', 'vda', 'sda', 'nvme0n1')
        for name in wanted:
            if os.path.exists('/dev/' + name): say(name)
        """,
    ),
    _program(
        "kernel_settings",
        "settings of the kernel",
        """
        for name in ('kernel/hostname', 'kernel/domainname', 'kernel/core_pattern', 'vm/swappiness', 'kernel/pid_max'):
            try:
                path = '/proc/sys/' + name
                value = open(path).read()
                with open(path, 'w') as file: file.write(value)
                say(path)
            except OSError: pass
        """,
    ),
    _program(
        "kernel_switches",
        "the kernel's memory and its emergency switch",
        """
        for path, flags in (('/proc/sysrq-trigger', os.O_WRONLY), ('/proc/kcore', os.O_RDONLY), ('/proc/kmsg', os.O_RDONLY | os.O_NONBLOCK)):
            try:
                os.close(os.open(path, flags))
                say(path)
            except OSError: pass
        """,
    ),
    _program(
        "core_dump",
        "a dump of memory, which the host's own program may take in",
        """
        import resource
        try: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))
        except (OSError, ValueError): pass
        pid = os.fork()
        if pid == 0: os.abort()
        if os.WCOREDUMP(os.waitpid(pid, 0)[1]): say('dumped')
        """,
    ),
    _program(
        "own_limits",
        "limits raised again",
        """
        import resource
        raised = [name for name in ('AS', 'NPROC', 'NOFILE', 'FSIZE') if resource.getrlimit(getattr(resource, 'RLIMIT_' + name))[1] == -1]
        if resource.getrlimit(resource.RLIMIT_NPROC)[1] > 5000: raised.append('many processes')
        if raised: say(*raised)
        """,
    ),
)
