"""The folder: made whole or not at all, one quickstart at a time in it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.quickstart.folder import RunFolder, default_path


def refusal(error: pytest.ExceptionInfo[JourneymanError]) -> str:
    assert error.value.code is ErrorCode.INVALID_INPUT
    assert "\n" not in error.value.message
    return error.value.message


def test_it_is_made_with_its_recipe_and_all_folders(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "one")
    folder.create("seed = 1\n", needed_bytes=0)
    assert sorted(path.name for path in folder.path.iterdir()) == ["logs", "objects", "plots", "run.toml"]
    assert sorted(path.name for path in folder.objects.iterdir()) == ["checkpoints", "policies", "trajectories"]
    assert folder.run_toml.read_text() == "seed = 1\n"


def test_discarding_removes_what_was_made_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "other").write_text("stays")
    folder = RunFolder(tmp_path / "runs" / "deep" / "one")
    folder.create("", needed_bytes=0)
    folder.bus.write_text("x")
    folder.discard()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["other"]


def test_an_empty_folder_that_stood_before_stays_empty(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create("", needed_bytes=0)
    folder.discard()
    assert tmp_path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(JourneymanError) as caught:
        RunFolder(tmp_path).create("", needed_bytes=0)
    assert "not an empty folder" in refusal(caught)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_too_little_space_is_said_with_both_figures_and_leaves_nothing(tmp_path: Path) -> None:
    free_bytes = shutil.disk_usage(tmp_path).free
    with pytest.raises(JourneymanError) as caught:
        RunFolder(tmp_path / "one").create("", needed_bytes=free_bytes * 2)
    assert f"this run needs about {free_bytes * 2 >> 20} MiB" in refusal(caught)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JourneymanError) as caught:
        RunFolder(tmp_path / "file" / "one").create("", needed_bytes=0)
    assert f"cannot write to {tmp_path}" in refusal(caught)


def test_only_a_quickstarts_folder_is_taken_up_again(tmp_path: Path) -> None:
    with pytest.raises(JourneymanError) as caught:
        RunFolder(tmp_path).reopen()
    assert "is not the folder of a quickstart" in refusal(caught)


def test_two_quickstarts_cannot_share_a_folder(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "one")
    first.create("", needed_bytes=0)
    program = (
        "import sys; from pathlib import Path; from journeyman.quickstart.folder import RunFolder;"
        f"RunFolder(Path({str(first.path)!r})).reopen()"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "another quickstart is running" in answer.stderr
    first.release()
    RunFolder(first.path).reopen()


def test_the_default_folder_is_named_after_the_seed_and_counts_up() -> None:
    taken = {Path("runs/quickstart-3"), Path("runs/quickstart-3-2")}
    assert default_path(3, Path(), taken.__contains__) == Path("runs/quickstart-3-3")
    assert default_path(4, Path(), taken.__contains__) == Path("runs/quickstart-4")
