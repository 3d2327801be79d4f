"""The six services of a quickstart as command lines and environments. Pure but for free ports and this process's id; the supervisor starts them."""

import os
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from journeyman.quickstart.folder import RunFolder

SERVICES = ("scheduler", "rollout", "sandbox", "verifier", "trainer", "registry")

SPIN_COUNT = "100000"
"""How long a torch thread spins for its next piece of work. At this model's size OMP_WAIT_POLICY=passive made the cold start 2.5 times slower
on two threads, as each operation waits for a futex; with one thread, as in RL, nothing spins at all."""

STOP_ORDER = (("rollout",), ("verifier", "trainer", "registry"), ("scheduler", "sandbox"))
"""Those that pull work first, then those that work on what was pulled, last those that the others call while they stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCommand:
    """How to start one service and where it will answer."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment."""
    target: str
    """host:port."""


def allocate_targets(names: tuple[str, ...], inherited: Mapping[str, str]) -> dict[str, str]:
    """host:port for each name: what the user set as NAME_LISTEN, else a free port of the loopback.

    The ports are held together while they are chosen, so that no two are equal, and let go for the services to take.
    """
    targets: dict[str, str] = {}
    with ExitStack() as held:
        for name in names:
            chosen = inherited.get(f"{name.upper()}_LISTEN", "")
            if not chosen or chosen.endswith(":0"):
                probe = held.enter_context(socket.socket())
                probe.bind(("127.0.0.1", 0))
                chosen = f"127.0.0.1:{probe.getsockname()[1]}"
            targets[name] = chosen
    return targets


def service_commands(
    folder: RunFolder, targets: Mapping[str, str], extra: Mapping[str, str], inherited: Mapping[str, str]
) -> list[ServiceCommand]:
    """One command a service. What the user set for a service in the environment is kept, except for where things of this run lie."""
    root = folder.path.resolve()
    ledger = f"sqlite:///{root / folder.ledger.name}"
    common = {
        "JOURNEYMAN_DIE_WITH_PARENT": str(os.getpid()),
        "GOMP_SPINCOUNT": SPIN_COUNT,
        "PYTHONUNBUFFERED": "1",
        **extra,
    }
    addresses = {
        "rollout": {
            "ROLLOUT_SCHEDULER": targets["scheduler"],
            "ROLLOUT_SANDBOX": targets["sandbox"],
            "ROLLOUT_WORKER_ID": "rollout-0",  # kept over a restart, so that the scheduler takes back at once what it held
        },
        "verifier": {"VERIFIER_SANDBOX": targets["sandbox"]},
        "registry": {"REGISTRY_SCHEDULER": targets["scheduler"], "REGISTRY_LEDGER": ledger},
        "scheduler": {"SCHEDULER_LEDGER": ledger},
    }
    return [
        ServiceCommand(
            name=name,
            argv=(sys.executable, "-m", f"{name}_service"),
            env={
                **inherited,
                **common,
                f"{name.upper()}_LISTEN": targets[name],
                f"{name.upper()}_BUS": f"sqlite:{root / folder.bus.name}",
                f"{name.upper()}_OBJECTS": f"file:{root / folder.objects.name}",
                f"{name.upper()}_LOG_FILE": str(root / "logs" / folder.log(name).name),
                **addresses.get(name, {}),
            },
            target=targets[name],
        )
        for name in SERVICES
    ]
