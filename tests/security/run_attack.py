"""Runs one attack in a box of its own and prints what came of it as JSON. Started by test_attacks.py inside a throw-away mount namespace.

An attack is a program for the box; what it prints is its loot, and a contained attack prints nothing.
"""

import asyncio
import json
import os
import socket
import sys
import tempfile
from dataclasses import asdict

from sandbox_service.adapters.local_boxes import local_boxes

SECRET = "the-host-is-here"
LOOK_AROUND = "import os; print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit())[1:-1])"

ATTACKS = {
    "fork_bomb": "import os\nwhile True:\n    os.fork()",
    "patient_fork_bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "memory_bomb": "hoard = []\nwhile True: hoard.append(bytearray(1 << 24))",
    "memory_bomb_of_many": (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        hoard = b'x' * (100 << 20); time.sleep(5); os._exit(0)\n"
        "ends = [os.wait()[1] for _ in range(8)]\nprint('all of it' * (not any(ends)))\nos._exit(max(ends) and 137)"
    ),
    "disk_fill": "with open('big', 'wb', buffering=0) as file:\n    while True: file.write(bytes(1 << 20))",
    "disk_fill_in_parts": "for part in range(100):\n    open(f'/tmp/{part}', 'wb').write(bytes(1 << 21))\nprint('all of it')",
    "inode_fill": "for number in range(100_000): open(f'f{number}', 'w').close()\nprint('all of it')",
    "output_flood": "while True: print('x' * 1000)",
    "deaf_loop": "import signal\nfor number in (2, 15, 24): signal.signal(number, signal.SIG_IGN)\nwhile True: pass",
    "deaf_sleep": "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nwhile True: time.sleep(1)",
    "many_loops": "import os\nfor _ in range(3): os.fork()\nwhile True: pass",
    "daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.closerange(0, 100)\n"
        "        time.sleep(30)\n    os._exit(0)"
    ),
    "host_files": (
        "import os, sys\nfor path in (sys.argv[1], '/etc/shadow', '/proc/1/root' + sys.argv[1], '/proc/1/cwd/../' + sys.argv[1],"
        " '/proc/self/root' + sys.argv[1], '/home', '/sys/kernel', '/var/lib', '/run'):\n    if os.path.exists(path): print(path)"
    ),
    "host_environment": (
        "import glob, os, sys\nif sys.argv[3] in str(os.environ): print('own')\nfor path in glob.glob('/proc/*/environ'):\n"
        "    try:\n        if sys.argv[3].encode() in open(path, 'rb').read(): print(path)\n    except OSError: pass"
    ),
    "host_loopback": (
        "import socket, sys\nfor host in ('127.0.0.1', '::1', '169.254.169.254', '10.0.2.2'):\n    try:\n"
        "        socket.create_connection((host, int(sys.argv[2])), 0.5); print(host)\n    except OSError: pass"
    ),
    "host_abstract_socket": (
        "import socket, sys\nthere = socket.socket(socket.AF_UNIX)\ntry: there.connect('\\0journeyman-' + sys.argv[2]); print('connected')\n"
        "except OSError: pass"
    ),
    "strange_sockets": (
        "import socket\nfor family in range(46):\n    for kind in (1, 2, 3, 5):\n        try: socket.socket(family, kind).close()\n"
        "        except OSError: continue\n        if family not in (1, 2, 10): print(family, kind)"
    ),
    "mount": (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0: print('mount')\n"
        "if libc.umount2(b'/proc', 2) == 0: print('umount')\nif libc.mount(None, b'/usr', None, 32 | 4096, None) == 0: print('remount')\n"
        "try: open('/usr/planted', 'w'); print('wrote')\nexcept OSError: pass\ntry: open('/planted', 'w'); print('root')\nexcept OSError: pass"
    ),
    "namespaces": (
        "import ctypes, os, platform\nlibc = ctypes.CDLL(None, use_errno=True)\nclone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\n"
        "for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):\n"
        "    if libc.unshare(flag) == 0: print('unshare', hex(flag))\n    made = libc.syscall(clone, flag | 17, 0, 0, 0, 0)\n"
        "    if made == 0: os._exit(0)\n    if made > 0: print('clone', hex(flag))\n"
        "if libc.syscall(435, 0, 0) >= 0: print('clone3')"
    ),
    "kernel_surface": (
        "import ctypes, errno, platform\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "numbers = {'x86_64': (321, 425, 323, 298, 250, 101, 310, 304), 'aarch64': (280, 425, 282, 241, 219, 117, 270, 265)}\n"
        "for number in numbers[platform.machine()]:\n    ctypes.set_errno(0)\n    made = libc.syscall(number, 0, 0, 0, 0, 0)\n"
        "    if made >= 0 or ctypes.get_errno() != errno.EPERM: print(number, made, ctypes.get_errno())"
    ),
    "init": (
        "import os, resource, signal\nfor path in ('/proc/1/mem', '/proc/1/environ', '/proc/1/fd/0', '/proc/1/maps'):\n"
        "    try: open(path, 'rb+' if path.endswith('mem') else 'rb').read(1); print(path)\n    except OSError: pass\n"
        "for number in (9, 19, 15): os.kill(1, number)\n"
        "try: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)); print('limits')\nexcept OSError: pass\n"
    ),
    "privileges": (
        "import os\nfacts = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):\n    if int(facts[name], 16): print(name, facts[name])\n"
        "if facts['NoNewPrivs'].strip() != '1' or facts['Seccomp'].strip() != '2': print('open')\n"
        "if os.getuid() == 0 or open('/proc/self/uid_map').read().split()[1] == '0' != '0': print('root')\n"
        "for uid in (0, 1):\n    try: os.setuid(uid); print('setuid', uid)\n    except OSError: pass\n"
        "print(*[fd for fd in os.listdir('/proc/self/fd') if int(fd) > 3], end='')"
    ),
    "kernel_settings": (
        "import glob, os\nfor path in glob.glob('/proc/sys/**', recursive=True) + ['/proc/sysrq-trigger', '/proc/kcore']:\n"
        "    if not os.path.isfile(path) or not os.access(path, os.W_OK): continue\n"
        "    try:\n        value = open(path).read(); file = open(path, 'w', buffering=1); file.write(value); file.flush(); print(path)\n"
        "    except OSError: pass"
    ),
    "links": (
        "import os\nos.symlink('/etc/passwd', 'absolute'); os.symlink('../../../../etc/passwd', 'upward')\n"
        "os.symlink('/proc/self/environ', 'magic'); os.symlink('/proc/1', 'folder'); os.mkfifo('fifo')\n"
        "os.symlink('good', 'inside'); open('good', 'w').write('good'); os.mkdir('sub'); os.symlink('/tmp', 'away')\n"
        "os.symlink('/dev/zero', 'endless')"
    ),
}
WALL_S = {"deaf_sleep": 2.0}
"""The others are to end for another reason, even on a busy machine."""
LINKED = [
    "absolute",
    "upward",
    "magic",
    "folder/environ",
    "folder",
    "fifo",
    "inside",
    "good",
    "sub",
    "away/x",
    "endless",
]


async def main(name: str) -> None:
    os.environ["JOURNEYMAN_TEST_SECRET"] = SECRET
    with tempfile.NamedTemporaryFile(prefix="witness-") as witness, socket.create_server(("127.0.0.1", 0)) as host:
        os.chmod(witness.name, 0o644)
        port = host.getsockname()[1]
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0journeyman-{port}")
            abstract.listen()
            print(json.dumps(await attack(name, [witness.name, str(port), SECRET])))


async def attack(name: str, argv: list[str]) -> dict[str, object]:
    async with local_boxes() as boxes:
        box, other = await boxes.open_group({}, 2, key="", lease_s=60.0)
        result = await box.run_python(ATTACKS[name], argv, timeout_s=WALL_S.get(name, 20.0), cpu_s=1.0)
        after = await box.run_python(LOOK_AROUND)
        beside = await other.run_python("print('fine')")
        files = await box.read_files(LINKED) if name == "links" else {}
        if name == "links":
            await box.write_files({"away/x": b"through a link"})
        told = asdict(result) | {"stdout": result.stdout.decode()[:500], "stderr": result.stderr.decode()[-500:]}
        return {
            "result": told,
            "after": [after.ending, after.stdout.decode().strip()],
            "beside": beside.stdout.decode().strip(),
            "files": {path: content.decode() for path, content in files.items()},
            "enforced": list(boxes.enforced),
        }


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
