"""How the sandbox's benchmark judges what it timed, and what a load counts as left over."""

from benchmarks.sandbox import Stopwatch, medians
from benchmarks.sandbox_server import Holdings
from journeyman.errors import ErrorCode, JourneymanError


async def test_what_is_refused_is_reported_with_its_reason() -> None:
    watch = Stopwatch()

    async def refuse() -> None:
        raise JourneymanError(ErrorCode.PRECONDITION, "no snapshots here")

    assert await watch.time("snapshot", refuse) == ""
    row = medians(watch)["snapshot"]
    assert (row.value, row.why) == (None, "no snapshots here")


async def test_exec_is_judged_by_what_it_costs_above_a_bare_one() -> None:
    watch = Stopwatch()

    async def nothing() -> None:
        return None

    for name in ("exec_true", "bare_true", "warm_python", "bare_python", "fork", "copy"):
        await watch.time(name, nothing)
    report = medians(watch)
    assert (report["exec_true_above_bare"].ok, report["warm_python"].ok, report["fork"].ok) == (True, True, True)
    assert report["bwrap_python"].value is None
    assert report["copy_to_fork"].higher_is_better


def test_holdings_above_are_never_less_than_nothing() -> None:
    few = Holdings(processes=3, mounts=20, groups=0, open_files=40)
    many = Holdings(processes=5, mounts=20, groups=2, open_files=39)
    assert many.above(few) == Holdings(processes=2, mounts=0, groups=2, open_files=0)
