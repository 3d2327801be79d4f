"""The whole loop, everything tiny, as a user runs it: one command, six services, real weights, real boxes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from journeyman.quickstart.journal import Stage, read_journal
from journeyman.quickstart.recipe import SIX_DOMAINS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

QUICKSTART = (sys.executable, "-m", "journeyman.cli.main", "quickstart")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smoke") / "run"
    subprocess.run([*QUICKSTART, "--smoke", "--out", str(folder), "--json", f"{folder}.json"], check=True, timeout=400)
    return folder


def test_the_result_has_every_figure_and_every_group_has_ended(run: Path) -> None:
    result = json.loads(run.with_suffix(".json").read_text())
    assert result == json.loads((run / "result.json").read_text())
    assert sorted(result["domains"]) == sorted(SIX_DOMAINS)
    assert all(scores["n"] == 6 for scores in result["domains"].values())
    groups = result["groups"]
    assert groups["admitted"] == groups["committed"] + groups["closed"] + groups["dropped"]
    assert groups["closed"] == 72
    assert groups["committed"] >= 3
    assert (result["lost_groups"], result["infra_failures_in_advantages"]) == (0, 0)
    assert result["trajectories"] > 72
    assert result["tokens"] > 0
    assert set(result["seconds"]) == {stage.value for stage in Stage}


def test_the_folder_holds_what_the_readme_says(run: Path) -> None:
    for name in ("run.toml", "ledger.db", "bus.db", "report.html", "result.json"):
        assert (run / name).stat().st_size > 0
    assert len(list((run / "plots").glob("*.png"))) == 6
    assert list((run / "objects" / "trajectories").glob("**/*.parquet"))
    for service in ("scheduler", "rollout", "sandbox", "verifier", "trainer", "registry", "quickstart"):
        lines = (run / "logs" / f"{service}.jsonl").read_text().splitlines()
        assert lines
        assert all(isinstance(json.loads(line), dict) for line in lines)


def test_transformers_loads_the_trained_policy(run: Path) -> None:
    newest = max((run / "objects" / "policies" / "rl").glob("*"), key=lambda folder: folder.stat().st_mtime)
    model = AutoModelForCausalLM.from_pretrained(newest)
    assert 100_000 < sum(parameter.numel() for parameter in model.parameters()) < 5_000_000


def test_trajectories_can_be_looked_at(run: Path) -> None:
    command = [sys.executable, "-m", "journeyman.cli.main", "trajectory", "show", str(run), "--json"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    trajectory = json.loads(answer.stdout)
    assert trajectory["turns"]
    assert all(token["text"] is not None for turn in trajectory["turns"] for token in turn["tokens"])


def test_resuming_what_is_done_changes_no_figure(run: Path) -> None:
    before = json.loads((run / "result.json").read_text())
    subprocess.run([*QUICKSTART, "--resume", str(run)], check=True, timeout=200)
    after = json.loads((run / "result.json").read_text())
    assert {key: value for key, value in after.items() if key != "seconds"} == {
        key: value for key, value in before.items() if key != "seconds"
    }


def test_ctrl_c_stops_everything_and_resume_finishes(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen([*QUICKSTART, "--smoke", "--out", str(folder)], stderr=subprocess.PIPE, text=True)
    _until_stage(folder, Stage.COLD_START)
    services = _children(process.pid)
    assert len(services) == 6
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert f"--resume {folder}" in stderr
    assert not any(Path(f"/proc/{pid}").exists() for pid in services)
    subprocess.run([*QUICKSTART, "--resume", str(folder)], check=True, timeout=400)
    assert json.loads((folder / "result.json").read_text())["lost_groups"] == 0


def test_services_die_with_a_killed_quickstart(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen([*QUICKSTART, "--smoke", "--out", str(folder)])
    _until_stage(folder, Stage.COLD_START)
    services = _children(process.pid)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(_is_alive(pid) for pid in services):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _until_stage(folder: Path, stage: Stage) -> None:
    deadline = time.monotonic() + 200
    journal = folder / "logs" / "quickstart.jsonl"
    while not journal.exists() or stage.value not in [entry.get("stage") for entry in read_journal(journal)]:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
