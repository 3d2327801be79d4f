"""Services in trouble in the middle of a quickstart. Killed ones (SIGKILL) are started again and no group is lost; hanging ones (SIGSTOP) block
what depends on them and nothing else, and invent no result.

The rollout worker plays scripts instead of a model (fast, and long enough in flight to be hit); everything else is real. That the victim
holds something is read from the scheduler's ledger just before the kill.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from jm.scheduler.v1 import scheduler_pb2 as pb
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceStub

from journeyman.errors import JourneymanError
from journeyman.quickstart.journal import read_journal
from journeyman.rpc.client import channel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

RECIPE = """
domains = ["code.repair", "math.tool"]
[cold_start]
num_steps = 1
num_episodes = 12
[rl]
num_steps = 5
group_size = 4
groups_per_step = 2
min_groups = 1
max_wait_s = 1.0
admission_slots = 6
checkpoint_every = 2
lease_s = 4.0
[evaluation]
tasks_per_domain = 3
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quickstart:
    """A quickstart under way."""

    process: "subprocess.Popen[str]"
    folder: Path
    scheduler: str

    def pid_of(self, service: str) -> int:
        """Process id of a service now."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        commands = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
        return next(pid for pid, command in commands.items() if f"{service}_service".encode() in command)


@pytest.fixture
def quickstart(tmp_path: Path) -> Iterator[Quickstart]:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        scheduler = f"127.0.0.1:{probe.getsockname()[1]}"
    folder = tmp_path / "run"
    environment = {
        **os.environ,
        "SCHEDULER_LISTEN": scheduler,
        "ROLLOUT_ENGINE": "scripted",
        "ROLLOUT_SCRIPTED_TURN_S": "0.4",
    }
    command = [sys.executable, "-m", "journeyman.cli.main", "quickstart", "--config", str(recipe), "--out", str(folder)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield Quickstart(process=process, folder=folder, scheduler=scheduler)
    process.kill()
    process.wait()


Holds = Callable[[pb.GroupRow], bool]


def has_rollout(state: str, domain: str = "") -> Holds:
    """A group with a rollout in the state."""
    return lambda group: domain in ("", group.domain) and any(rollout.state == state for rollout in group.rollouts)


def is_in(*states: str) -> Holds:
    """A group in one of the states."""
    return lambda group: group.state in states


VICTIMS: dict[str, tuple[str, Holds]] = {
    "scheduler": ("rl", has_rollout("LEASED")),
    "rollout": ("rl", has_rollout("LEASED")),
    "sandbox": ("rl", has_rollout("LEASED", "code.repair")),
    "verifier": ("rl", has_rollout("RECORDED")),
    "trainer": ("rl", is_in("READY", "TAKEN")),
    "registry": ("before", has_rollout("LEASED")),
}


@pytest.mark.parametrize("victim", list(VICTIMS))
async def test_a_run_survives_the_kill_of_a_service_that_holds_a_group(quickstart: Quickstart, victim: str) -> None:
    run_id, holds = VICTIMS[victim]
    held = await group_that(quickstart, run_id, holds)
    os.kill(quickstart.pid_of(victim), signal.SIGKILL)
    output, _ = await asyncio.to_thread(quickstart.process.communicate, timeout=300)
    assert quickstart.process.returncode == 0, output
    assert f"{victim} ended (killed by signal 9) and is started again" in output
    assert_every_group_has_ended(quickstart.folder)
    restarts = [entry for entry in read_journal(quickstart.folder / "logs" / "quickstart.jsonl") if "service" in entry]
    assert [entry["service"] for entry in restarts] == [victim], held.group_id


def assert_every_group_has_ended(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    groups = result["groups"]
    assert groups["admitted"] == groups["committed"] + groups["closed"] + groups["dropped"]
    assert groups["closed"] == 12
    assert groups["committed"] > 0
    assert (result["lost_groups"], result["infra_failures_in_advantages"]) == (0, 0)
    assert all(scores["n"] == 3 for scores in result["domains"].values())


async def group_that(quickstart: Quickstart, run_id: str, holds: Holds) -> pb.GroupRow:
    """Waits until the ledger shows such a group."""
    connection = channel(quickstart.scheduler)
    stub = SchedulerServiceStub(connection)
    try:
        async with asyncio.timeout(200):
            while True:
                groups = await answer(stub.ListGroups(pb.ListGroupsRequest(run_id=run_id)))
                found = next((group for group in groups.groups if holds(group)), None) if groups else None
                if found is not None:
                    return found
                assert quickstart.process.poll() is None, quickstart.process.communicate()[0]
                await asyncio.sleep(0.01)
    finally:
        await connection.close(None)


async def answer(call: Awaitable[pb.ListGroupsResponse]) -> pb.ListGroupsResponse | None:
    try:
        return await call
    except JourneymanError:
        return None


TRAINABLE = {"READY", "TAKEN", "COMMITTED"}
Groups = dict[str, pb.GroupRow]


async def watch(quickstart: Quickstart, until: Callable[[Groups], bool]) -> Groups:
    """The train run's groups by id, once `until` holds."""
    connection = channel(quickstart.scheduler)
    stub = SchedulerServiceStub(connection)
    try:
        async with asyncio.timeout(120):
            while True:
                rows = await answer(stub.ListGroups(pb.ListGroupsRequest(run_id="rl", page_size=1000)))
                groups = {row.group_id: row for row in rows.groups} if rows else {}
                if until(groups):
                    return groups
                assert quickstart.process.poll() is None
                await asyncio.sleep(0.05)
    finally:
        await connection.close(None)


async def finish(quickstart: Quickstart) -> None:
    output, _ = await asyncio.to_thread(quickstart.process.communicate, timeout=300)
    assert quickstart.process.returncode == 0, output
    assert_every_group_has_ended(quickstart.folder)


async def test_with_the_sandbox_stopped_no_code_group_completes_and_others_go_on(quickstart: Quickstart) -> None:
    await group_that(quickstart, "rl", has_rollout("LEASED", "code.repair"))
    sandbox = quickstart.pid_of("sandbox")
    os.kill(sandbox, signal.SIGSTOP)
    before = await watch(quickstart, lambda groups: True)

    def others_went_on(groups: Groups) -> bool:
        ended = [g for g in groups.values() if g.domain == "math.tool" and g.state not in ("ADMITTED", "OPEN")]
        return len([g for g in ended if g.group_id not in before or before[g.group_id].state == "OPEN"]) >= 2

    after = await watch(quickstart, others_went_on)
    # A trainable group has a member that passed, and a repair passes only by running.
    new = [g for g in after.values() if g.domain == "code.repair" and g.group_id not in before]
    assert not [g.group_id for g in new if g.state in TRAINABLE]
    os.kill(sandbox, signal.SIGCONT)
    await finish(quickstart)


async def test_with_the_verifier_stopped_no_group_becomes_ready(quickstart: Quickstart) -> None:
    await group_that(quickstart, "rl", has_rollout("LEASED"))
    verifier = quickstart.pid_of("verifier")
    os.kill(verifier, signal.SIGSTOP)
    before = await watch(quickstart, lambda groups: True)

    def one_waits_for_its_verdict(groups: Groups) -> bool:
        new = [g for g in groups.values() if g.group_id not in before or before[g.group_id].state == "ADMITTED"]
        return any(all(r.state == "RECORDED" for r in g.rollouts) for g in [*new, *groups.values()])

    after = await watch(quickstart, one_waits_for_its_verdict)
    waiting = {g.group_id for g in after.values() if all(r.state == "RECORDED" for r in g.rollouts)}
    assert not [g.group_id for g in after.values() if g.group_id in waiting and g.state in TRAINABLE]
    assert not [g.group_id for g in after.values() if g.group_id not in before and g.state in TRAINABLE]
    os.kill(verifier, signal.SIGCONT)
    await finish(quickstart)
