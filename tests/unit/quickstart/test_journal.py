"""The journal on a disk that takes nothing, and after a line that was cut short."""

import errno
import os
from pathlib import Path

import pytest

from journeyman.quickstart.journal import Journal, read_journal


def test_a_full_disk_is_told_and_closing_is_no_second_failure() -> None:
    journal = Journal(Path("/dev/full"))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        journal.append("note", text="x")
    journal.close()


def test_entries_after_one_that_was_cut_short_are_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"at": 1, "kind": "first"}\n{"at": 2, "ki')
    journal = Journal(path)
    journal.append("kept")
    journal.close()
    assert [entry["kind"] for entry in read_journal(path)] == ["first", "kept"]
