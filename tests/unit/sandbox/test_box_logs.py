"""Logs of a box: readable in parts, bounded in number, gone with the box or with the next start."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.box_logs import MAX_LOGS, BoxLogs, remove_stale_logs


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def logs(temporary: Path) -> Iterator[BoxLogs]:
    logs = BoxLogs()
    yield logs
    logs.remove()


def write(logs: BoxLogs, name: str, content: bytes) -> None:
    fd = logs.open(name)
    os.write(fd, content)
    os.close(fd)


@pytest.mark.parametrize(
    ("offset", "length", "content", "start"),
    [(0, 4, b"0123", 0), (8, 10, b"89", 8), (-3, 2, b"78", 7), (-99, 2, b"01", 0), (50, 5, b"", 50)],
)
def test_parts(logs: BoxLogs, offset: int, length: int, content: bytes, start: int) -> None:
    write(logs, "a", b"0123456789")
    part = logs.read("a", offset, length)
    assert (part.content, part.start, part.total_bytes) == (content, start, 10)


@pytest.mark.parametrize("name", ["b", "", "../a", "/etc/passwd", "a/../a"])
def test_only_own_names_are_read(logs: BoxLogs, name: str) -> None:
    write(logs, "a", b"1")
    with pytest.raises(JourneymanError, match="there is no log") as caught:
        logs.read(name, 0, 1)
    assert caught.value.code is ErrorCode.NOT_FOUND


def test_the_oldest_make_room(logs: BoxLogs, temporary: Path) -> None:
    for number in range(MAX_LOGS + 1):
        write(logs, f"run{number}", b"1")
    (folder,) = temporary.iterdir()
    assert len(list(folder.iterdir())) == MAX_LOGS
    with pytest.raises(JourneymanError):
        logs.read("run0", 0, 1)
    assert logs.read("run1", 0, 1).content == b"1"


def test_nothing_is_made_without_need_and_nothing_is_left(temporary: Path) -> None:
    logs = BoxLogs()
    assert not list(temporary.iterdir())
    write(logs, "a", b"1")
    logs.remove()
    assert not list(temporary.iterdir())
    logs.remove()


def test_only_logs_of_the_dead_are_removed(logs: BoxLogs, temporary: Path) -> None:
    write(logs, "a", b"1")
    left = temporary / "journeyman-log-left"
    left.mkdir()
    (left / "b").write_bytes(b"2")
    (temporary / "journeyman-log-link").symlink_to(temporary.parent)
    remove_stale_logs()
    assert not left.exists()
    assert logs.read("a", 0, 1).content == b"1"
    assert temporary.parent.exists()
