"""What there is to find on the host during a storm of attacks: a file, a folder, sockets. Used by storm.py."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.security.attack import SECRET, HostFacts


class Host:
    """The host's side."""

    def __init__(self, facts: HostFacts, udp: socket.socket, stages: str) -> None:
        self.facts = facts
        self._udp = udp
        self.stages = stages
        """Where uncontained programs have their folders."""

    def datagrams(self) -> list[str]:
        """What has come since last asked."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self._udp.recv(100).decode(errors="replace"))
        return found


@contextlib.contextmanager
def open_host(folder: str) -> Iterator[Host]:
    """Below folder, which everybody can read."""
    witness, free, stages = Path(folder, "host/witness"), Path(folder, "host/free"), Path(folder, "stages")
    witness.parent.mkdir()
    stages.mkdir()
    witness.write_text(SECRET)
    witness.chmod(0o644)
    free.mkdir()
    free.chmod(0o777)
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as local,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        port = tcp.getsockname()[1]
        abstract.bind(f"\0attacked-{port}")
        abstract.listen()
        socket_path = Path(folder, "socket")
        local.bind(str(socket_path))
        local.listen()
        os.chmod(socket_path, 0o777)
        facts = HostFacts(
            witness=str(witness),
            folder=str(free),
            tcp_port=port,
            udp_port=udp.getsockname()[1],
            abstract=f"attacked-{port}",
            socket_path=str(socket_path),
            victim_pid=0,
        )
        yield Host(facts, udp, str(stages))
