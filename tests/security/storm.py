"""Runs every attack against one kind of isolation, or uncontained, and prints a JSON line each. Started by verdicts.py, unshared.

`python -m tests.security.storm KIND FOLDER [NAME...]`. Attacks run a few at a time. After each, nothing of it may live on in its box and a
program in another box must run as ever; otherwise the attack got through, whatever it brought home.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from jm.sandbox.v1 import sandbox_pb2 as pb

from journeyman.errors import JourneymanError
from tests.security import throwaway
from tests.security.attack import LOST, Attack, Cell, Hanging, Outcome
from tests.security.attacks import ATTACKS
from tests.security.boxed import BoxedScene, NotHere, Service, running_service
from tests.security.host import Host, open_host
from tests.security.uncontained import uncontained_scene


class Disturbed(Exception):
    """Somebody stopped answering: because of this attack, or of one that ran meanwhile."""


class ServiceLost(Disturbed):
    """The service or its maker of boxes died."""


UNCONTAINED = "uncontained"
_AT_ONCE = 6
_FELT = "felt in another box"
_SURVIVORS = """
parents, watcher = {}, os.getppid()
for name in os.listdir('/proc'):
    if name.isdigit() and int(name) != os.getpid():
        try: state, parent = open(f'/proc/{name}/stat').read().rpartition(')')[2].split()[:2]
        except OSError: continue
        if state not in 'ZX': parents[int(name)] = int(parent)
for pid in parents:
    above = parents[pid]
    while above not in (watcher, 0) and above in parents: above = parents[above]
    if above == watcher: say('survivor', pid)
"""


def _tell(attack: Attack, outcome: Outcome, error: str = "") -> None:
    row = {"name": attack.name, "loot": outcome.loot[:200], "ending": outcome.ending, "error": error}
    print(json.dumps(row), flush=True)


async def _attempt(attack: Attack, play: Callable[[], Awaitable[Outcome]]) -> None:
    try:
        _tell(attack, await play())
    except Disturbed:
        raise
    except Exception as error:  # one attack that fails to be made must not hide the others
        _tell(attack, Outcome(loot="", ending="error"), f"{type(error).__name__}: {error}")


async def _together(attacks: Sequence[Attack], attempt: Callable[[Attack], Awaitable[None]]) -> None:
    """A few at a time."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(attack: Attack) -> None:
        async with slots:
            await attempt(attack)

    await asyncio.gather(*(one(attack) for attack in attacks))


async def uncontained(attacks: Sequence[Attack], host: Host) -> None:
    """The positive controls."""

    async def attempt(attack: Attack) -> None:
        async def play() -> Outcome:
            async with uncontained_scene(host, attack) as scene:
                return await attack.plan(scene)

        await _attempt(attack, play)

    await _together([attack for attack in attacks if not attack.alone], attempt)
    for attack in attacks:
        if attack.alone:
            await attempt(attack)


async def boxed(attacks: Sequence[Attack], host: Host, isolation: str, folder: str) -> None:
    """Attacks on boxes. Those that were disturbed are made again, one by one, to see which of them it was."""
    left = [attack for attack in attacks if attack.alone]
    async with _attacked(isolation, host, folder) as (service, beside):
        found = await service.stub.GetCapabilities(pb.GetCapabilitiesRequest())
        print(json.dumps({"isolation": found.isolation, "enforced": list(found.enforced)}), flush=True)

        async def attempt(attack: Attack) -> None:
            try:
                await _attempt(attack, lambda: _play(attack, service, host, beside, is_alone=False))
            except Disturbed:
                left.append(attack)

        await _together([attack for attack in attacks if not attack.alone], attempt)
    while left:
        async with _attacked(isolation, host, folder) as (service, beside):
            await _one_by_one(left, service, host, beside)


async def _one_by_one(left: list[Attack], service: Service, host: Host, beside: Cell) -> None:
    """Until none is left or the service dies of one."""
    while left:
        attack = left.pop()
        try:
            await _attempt(attack, lambda attack=attack: _play(attack, service, host, beside, is_alone=True))
        except ServiceLost as error:
            _tell(attack, Outcome(loot=f"the service died: {error}"))
            return
        except Disturbed as error:
            _tell(attack, Outcome(loot=f"its box or the service stopped answering: {error}"))


@contextlib.asynccontextmanager
async def _attacked(isolation: str, host: Host, folder: str) -> AsyncIterator[tuple[Service, Cell]]:
    """A service and a box that nobody attacks."""
    async with running_service(isolation, host, folder) as service:
        yield service, await BoxedScene(service, host).open()


async def _play(attack: Attack, service: Service, host: Host, beside: Cell, *, is_alone: bool) -> Outcome:
    scene = BoxedScene(service, host)
    try:
        scene.cell = await scene.open()
        outcome = await attack.plan(scene)
        if not outcome.loot:
            outcome = await _aftermath(scene.cell, beside, outcome)
        if not is_alone and (outcome.ending in LOST or outcome.loot.startswith(_FELT)):
            raise Disturbed(outcome.loot)
        return outcome
    except (Hanging, JourneymanError) as error:
        if await service.survives():
            raise Disturbed(str(error)[:150]) from error
        raise ServiceLost(str(error)[:150]) from error
    finally:
        with contextlib.suppress(JourneymanError):
            await scene.close()


async def _aftermath(cell: Cell, other: Cell, outcome: Outcome) -> Outcome:
    """What is left of it in its box, and whether another still works."""
    beside = await other.run("say('fine')")
    if beside.stdout != "fine\n":
        return Outcome(loot=f"{_FELT}: {beside.ending} {beside.stderr}"[:200], ending=outcome.ending)
    survivors = await cell.run(_SURVIVORS)
    return Outcome(loot=survivors.stdout.strip(), ending=outcome.ending)


def main(arguments: Sequence[str]) -> None:
    """Enters the namespaces' other half and attacks."""
    kind, folder, *names = arguments
    attacks = [attack for attack in ATTACKS if not names or attack.name in names]
    with throwaway.limited():
        throwaway.enter(folder)
        if kind in (UNCONTAINED, "weak"):
            throwaway.loosen(folder)
        with open_host(folder) as host:
            if kind == UNCONTAINED:
                return asyncio.run(uncontained(attacks, host))
            try:
                asyncio.run(boxed(attacks, host, kind, folder))
            except NotHere as error:
                print(json.dumps({"not_here": str(error)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
