"""Control groups of zygotes that are gone are removed, those of living ones never, though their pids mean nothing here."""

import os
from pathlib import Path

from journeyman.testing.missing import missing
from sandbox_service.adapters.zygote.cgroups import open_cgroups, remove_stale


def groups(mark: str) -> list[Path]:
    return [Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup") if mark in Path(folder).name]


def test_only_unlocked_groups_are_removed() -> None:
    mark = f"999999999-test{os.getpid()}"
    cgroups, reason = open_cgroups(mark)
    try:
        if not cgroups.controllers:
            missing(f"no control groups: {reason}")
        remove_stale()
        (living, *_) = groups(mark)
        dead = living.with_name("journeyman-999999999-dead")
        dead.mkdir()
        remove_stale()
        assert groups(mark)
        assert not dead.exists()
    finally:
        cgroups.close()
    assert not groups(mark)
