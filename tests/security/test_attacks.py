"""Attacks on this machine's isolation. Each runs in a process of its own inside a throw-away mount namespace, so that a breach stays there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("run_attack.py")
ROOT = Path(__file__).parents[2]
OUTER = ["unshare", *([] if os.geteuid() == 0 else ["-U", "--map-root-user"]), "-m", "--propagation", "private"]
LOOTERS = (
    "host_files",
    "host_environment",
    "host_loopback",
    "host_abstract_socket",
    "strange_sockets",
    "mount",
    "namespaces",
    "kernel_surface",
    "init",
    "privileges",
    "kernel_settings",
)


@pytest.fixture(scope="module", autouse=True)
def _needs_namespaces() -> None:
    probe = subprocess.run([*OUTER, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        reason = f"no throw-away namespace for attacks: {probe.stderr.strip()}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def attack(name: str) -> Any:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*OUTER, sys.executable, str(SCRIPT), name],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert told["beside"] == "fine", "the attack was felt in another box"
    return told


@pytest.mark.parametrize("name", LOOTERS)
def test_finds_no_loot(name: str) -> None:
    told = attack(name)
    assert told["result"]["stdout"] == "", told["result"]
    assert told["result"]["ending"] == "exited", told["result"]
    assert told["after"] == ["exited", "[]"]


@pytest.mark.parametrize(
    ("name", "endings"),
    [
        ("fork_bomb", {"too_many_processes"}),
        ("patient_fork_bomb", {"too_many_processes", "cpu_timeout"}),
        ("memory_bomb", {"out_of_memory"}),
        ("disk_fill", {"disk_full"}),
        ("disk_fill_in_parts", {"disk_full"}),
        ("inode_fill", {"disk_full"}),
        ("output_flood", {"output_limit"}),
        ("deaf_loop", {"cpu_timeout"}),
        ("many_loops", {"cpu_timeout"}),
        ("deaf_sleep", {"wall_timeout"}),
    ],
)
def test_is_stopped_and_named(name: str, endings: set[str]) -> None:
    told = attack(name)
    assert told["result"]["ending"] in endings, told["result"]
    assert "all of it" not in told["result"]["stdout"]
    assert told["after"][0] == "exited", "the box did not survive"
    assert told["after"][1] == "[]", "something of the attack lives on"
    if "wall_timeout" in endings:
        assert told["result"]["control_passed"]


def test_memory_of_the_whole_box_is_limited() -> None:
    told = attack("memory_bomb_of_many")
    if "memory" not in told["enforced"]:
        pytest.skip("no control groups: only each process is limited, which GetCapabilities says")
    assert told["result"]["ending"] == "out_of_memory", told["result"]


def test_daemons_do_not_outlive_their_program() -> None:
    told = attack("daemon")
    assert told["result"]["ending"] == "exited"
    assert told["after"] == ["exited", "[]"]


def test_files_are_never_read_through_a_link_that_leads_out() -> None:
    told = attack("links")
    assert told["result"]["ending"] == "exited", told["result"]
    assert told["files"] == {"inside": "good", "good": "good"}
