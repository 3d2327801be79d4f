"""`journeyman quickstart`: bad input that is found before any service starts. One line, exit code 2, nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from journeyman.cli.main import main
from journeyman.quickstart.folder import RunFolder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    place = tmp_path / "cwd"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["quickstart", *arguments])
    assert result.exit_code == 2
    assert len(result.output.splitlines()) == 1
    return result.output


def test_help_has_an_example() -> None:
    result = CliRunner().invoke(main, ["quickstart", "--help"])
    assert result.exit_code == 0
    assert "journeyman quickstart --seed 1 --minutes 5" in result.output


def test_a_bad_recipe_is_refused_and_leaves_nothing(elsewhere: Path) -> None:
    recipe = elsewhere / "recipe.toml"
    recipe.write_text("[rl]\ngroup_sise = 8\n")
    assert "unknown key rl.group_sise; did you mean rl.group_size?" in refusal("--config", "recipe.toml")
    recipe.write_text("seed = = 1")
    assert "not valid TOML" in refusal("--config", "recipe.toml")
    assert "absent.toml: No such file or directory" in refusal("--config", "absent.toml")
    assert "seed = -1" in refusal("--seed", "-1")
    assert [path.name for path in elsewhere.iterdir()] == ["recipe.toml"]


def test_a_wrong_model_path_is_refused_and_leaves_nothing(elsewhere: Path) -> None:
    assert "--model absent: no such folder" in refusal("--model", "absent")
    (elsewhere / "empty").mkdir()
    assert "it has no config.json" in refusal("--model", "empty")
    assert [path.name for path in elsewhere.iterdir()] == ["empty"]


def test_only_a_quickstarts_folder_is_resumed(elsewhere: Path) -> None:
    assert "absent is not the folder of a quickstart" in refusal("--resume", "absent")
    assert list(elsewhere.iterdir()) == []


def test_a_resumed_run_keeps_its_recipe(elsewhere: Path) -> None:
    folder = RunFolder(elsewhere / "run")
    folder.create("seed = 1\n", needed_bytes=0)
    folder.release()
    for option in (["--seed", "2"], ["--smoke"], ["--model", "m"], ["--out", "o"], ["--config", "c"]):
        assert f"{option[0]} cannot be changed with --resume" in refusal("--resume", "run", *option)
    folder.run_toml.write_text("sed = 1\n")
    assert "did you mean seed?" in refusal("--resume", "run")


def test_an_unusable_place_for_the_result_is_refused_before_anything_runs(elsewhere: Path) -> None:
    assert "cannot write a file there" in refusal("--json", "absent/result.json")
    assert "cannot write a file there" in refusal("--json", ".")
    assert list(elsewhere.iterdir()) == []


def test_a_folder_in_use_is_refused(elsewhere: Path) -> None:
    (elsewhere / "mine").mkdir()
    (elsewhere / "mine" / "thesis.txt").write_text("x")
    assert "not an empty folder" in refusal("--out", "mine")
    assert [path.name for path in (elsewhere / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize(
    ("mount", "said"),
    [
        ("mount -t tmpfs -o size=8m none {place}", "MiB free, but this run needs about"),
        ("mount -t tmpfs -o size=64k,ro none {place}", "Read-only file system"),
    ],
)
def test_a_small_or_read_only_file_system_is_refused(elsewhere: Path, mount: str, said: str) -> None:
    place = elsewhere / "place"
    place.mkdir()
    quickstart = f"{sys.executable} -m journeyman.cli.main quickstart --smoke --out {place}/run; echo rc=$?; ls {place}"
    answer = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", f"{mount.format(place=place)} && {quickstart}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    if "permission denied" in answer.stderr or "Operation not permitted" in answer.stderr:
        pytest.skip("this machine allows no private mounts")
    assert said in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stdout == "rc=2\n"
