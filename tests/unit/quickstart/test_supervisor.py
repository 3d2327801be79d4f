"""The supervisor on tiny fake services: it restarts, gives up, passes refusals on, stops in order."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.quickstart.services import ServiceCommand, allocate_targets
from journeyman.quickstart.supervisor import ServiceEnded, Supervisor

FAKE = Path(__file__).with_name("fake_service.py")


def commands(tmp_path: Path, **modes: str) -> list[ServiceCommand]:
    targets = allocate_targets(tuple(modes), {})
    return [
        ServiceCommand(
            name=name,
            argv=(sys.executable, str(FAKE)),
            env={
                **os.environ,
                "FAKE_NAME": name,
                "FAKE_MODE": mode,
                "FAKE_LISTEN": targets[name],
                "FAKE_NOTES": str(tmp_path / "notes"),
            },
            target=targets[name],
        )
        for name, mode in modes.items()
    ]


@pytest.fixture
def endings() -> list[ServiceEnded]:
    return []


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110  # what is waited for happens in another process
            await asyncio.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_all_serve_and_stop_in_the_order_given(tmp_path: Path, endings: list[ServiceEnded]) -> None:
    supervisor = Supervisor(commands(tmp_path, a="serve", b="serve"), [["b"], ["a"]], endings.append)
    await supervisor.start()
    pids = [supervisor.pid("a"), supervisor.pid("b")]
    assert supervisor.cpu_s() > 0
    await supervisor.stop()
    assert (tmp_path / "notes").read_text().split("\n")[:2] == ["b stopped", "a stopped"]
    assert not any(is_alive(pid) for pid in pids)
    assert endings == []


async def test_a_killed_service_is_restarted_on_its_port_and_that_is_said(
    tmp_path: Path, endings: list[ServiceEnded]
) -> None:
    supervisor = Supervisor(commands(tmp_path, a="serve"), [["a"]], endings.append)
    await supervisor.start()
    before = supervisor.pid("a")
    os.kill(before, signal.SIGKILL)
    await until(lambda: supervisor.pid("a") != before)
    await supervisor.until_serving()
    assert [(ending.name, ending.how, ending.will_restart) for ending in endings] == [("a", "killed by signal 9", True)]
    assert not supervisor.failed.done()
    await supervisor.stop()


async def test_a_service_that_refuses_its_input_ends_the_start_with_its_own_line(
    tmp_path: Path, endings: list[ServiceEnded]
) -> None:
    supervisor = Supervisor(commands(tmp_path, a="serve", b="refuse"), [["a", "b"]], endings.append)
    with pytest.raises(JourneymanError) as caught:
        await supervisor.start()
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.message == "fake: no isolation to be had; --allow-weak accepts that"
    await supervisor.stop()


async def test_a_service_that_dies_again_and_again_ends_the_quickstart(
    tmp_path: Path, endings: list[ServiceEnded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journeyman.quickstart.supervisor.FIRST_BACKOFF_S", 0.001)
    supervisor = Supervisor(commands(tmp_path, a="crash"), [["a"]], endings.append)
    with pytest.raises(JourneymanError) as caught:
        await supervisor.start()
    assert caught.value.code is ErrorCode.INTERNAL
    assert "a ends again and again (exit code 1: Traceback: boom)" in caught.value.message
    assert [ending.will_restart for ending in endings] == [True] * 5 + [False]
    await supervisor.stop()


async def test_services_are_out_of_reach_of_the_terminals_ctrl_c(tmp_path: Path, endings: list[ServiceEnded]) -> None:
    supervisor = Supervisor(commands(tmp_path, a="serve"), [["a"]], endings.append)
    await supervisor.start()
    assert os.getpgid(supervisor.pid("a")) != os.getpgid(0)
    await supervisor.stop()


def test_ports_differ_and_the_users_choice_is_kept() -> None:
    targets = allocate_targets(("a", "b", "c"), {"B_LISTEN": "127.0.0.1:7777", "C_LISTEN": "127.0.0.1:0"})
    assert targets["b"] == "127.0.0.1:7777"
    assert len({targets["a"], targets["b"], targets["c"]}) == 3
    assert not targets["c"].endswith(":0")
