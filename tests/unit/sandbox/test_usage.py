"""Use that is not known is named, and results survive the wire."""

from hypothesis import given
from hypothesis import strategies as st

from journeyman.boxes.convert import (
    entry_from_proto,
    entry_to_proto,
    limits_to_proto,
    run_result_from_proto,
    run_result_to_proto,
)
from journeyman.boxes.port import BoxLimits, DirectoryEntry, Ending, EntryKind, OutputCut, RunResult, Usage
from sandbox_service.convert import shape_from_proto
from sandbox_service.core.shape import BoxShape
from sandbox_service.core.usage import untold

NUMBERS = st.integers(0, 1 << 40)
USES = st.builds(
    Usage,
    memory_peak_bytes=NUMBERS,
    processes_peak=st.integers(0, 1 << 20),
    disk_bytes=NUMBERS,
    num_files=st.integers(0, 1 << 20),
    output_bytes=NUMBERS,
)
CUTS = st.none() | st.builds(OutputCut, head_bytes=NUMBERS, total_bytes=NUMBERS, log=st.text(max_size=5))


@given(
    ending=st.sampled_from(Ending),
    code=st.integers(0, 255),
    streams=st.tuples(st.binary(), st.binary()),
    used=USES,
    cuts=st.tuples(CUTS, CUTS),
)
def test_results_survive_the_wire(
    ending: Ending,
    code: int,
    streams: tuple[bytes, bytes],
    used: Usage,
    cuts: tuple[OutputCut | None, OutputCut | None],
) -> None:
    result = RunResult(
        ending=ending,
        exit_code=code if ending is Ending.EXITED else None,
        stdout=streams[0],
        stderr=streams[1],
        wall_s=1.5,
        cpu_s=0.25,
        truncated=any(cuts),
        used=used,
        stdout_cut=cuts[0],
        stderr_cut=cuts[1],
    )
    assert run_result_from_proto(run_result_to_proto(result, isolation="ns-root")) == result


@given(st.builds(DirectoryEntry, name=st.text(), kind=st.sampled_from(EntryKind), size_bytes=NUMBERS, mode=st.just(7)))
def test_entries_survive_the_wire(entry: DirectoryEntry) -> None:
    assert entry_from_proto(entry_to_proto(entry)) == entry


def test_every_limit_of_a_client_is_one_of_the_service() -> None:
    wanted = {
        name: 1 << 25 if name.endswith("bytes") and name != "output_bytes" else 100 for name in BoxShape.__slots__
    }
    assert BoxLimits.__slots__ == BoxShape.__slots__
    assert shape_from_proto(limits_to_proto(BoxLimits(**wanted)), BoxShape()) == BoxShape(**wanted)


def test_what_is_not_known_is_named() -> None:
    assert untold(Usage(memory_peak_bytes=1, processes_peak=1, disk_bytes=1, num_files=1)) == ()
    assert [text.partition(":")[0] for text in untold(Usage(memory_peak_bytes=1, disk_bytes=1))] == [
        "use of processes_peak",
        "use of num_files",
    ]
