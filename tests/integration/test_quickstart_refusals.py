"""`journeyman quickstart`: bad input that only a service can find. One line, exit code 2, no folder left behind."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def refusal(cwd: Path, *arguments: str, **environment: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", "journeyman.cli.main", "quickstart", "--smoke", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert answer.returncode == 2, answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert not (cwd / "runs").exists()
    return answer.stderr


def test_an_unknown_setting_is_named_with_the_right_one(tmp_path: Path) -> None:
    said = refusal(tmp_path, SCHEDULER_LEDGR="sqlite:///x")
    assert "unknown setting SCHEDULER_LEDGR" in said
    assert "did you mean SCHEDULER_LEDGER?" in said


def test_a_taken_port_is_named(tmp_path: Path, taken_port: int) -> None:
    assert f"127.0.0.1:{taken_port}" in refusal(tmp_path, VERIFIER_LISTEN=f"127.0.0.1:{taken_port}")


def test_a_sandbox_that_cannot_isolate_names_the_way_out(tmp_path: Path) -> None:
    assert "allow-weak" in refusal(tmp_path, SANDBOX_ISOLATION="weak")


def test_a_model_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "bert"}')
    assert str(model) in refusal(tmp_path, "--model", "model")
