"""What the edge accepts: limits within their ranges, environments, folders."""

import pytest
from jm.sandbox.v1 import sandbox_pb2 as pb

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.box_messages import WRITE_BYTES, writes_of
from sandbox_service.convert import program_from_proto, shape_from_proto
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import RANGES, BoxShape

DEFAULT = BoxShape()


def test_every_limit_has_a_range_that_holds_its_default() -> None:
    for name, value in DEFAULT.to_json().items():
        least, most = RANGES[name]
        assert least <= value <= most, name
    assert RANGES.keys() == DEFAULT.to_json().keys()


def test_absent_means_default_and_the_record_survives_the_wire() -> None:
    assert shape_from_proto(pb.BoxLimits(), DEFAULT) == DEFAULT
    shape = shape_from_proto(pb.BoxLimits(memory_bytes=1 << 26, log_bytes=5, file_bytes=6, max_open_files=64), DEFAULT)
    assert (shape.memory_bytes, shape.log_bytes, shape.file_bytes, shape.max_open_files) == (1 << 26, 5, 6, 64)
    assert BoxShape.from_json(shape.to_json()) == shape


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory_bytes", -1),
        ("memory_bytes", 16 * 1024 * 1024 - 1),
        ("max_processes", 1_000_000),
        ("disk_bytes", 1),
        ("max_files", -5),
        ("output_bytes", 1 << 30),
        ("log_bytes", -1),
        ("file_bytes", 1 << 62),
        ("max_open_files", 3),
    ],
)
def test_absurd_limits_are_refused_by_name_value_and_range(name: str, value: int) -> None:
    limits = pb.BoxLimits()
    setattr(limits, name, value)
    with pytest.raises(JourneymanError) as caught:
        shape_from_proto(limits, DEFAULT)
    assert caught.value.code is ErrorCode.INVALID_INPUT
    least, most = RANGES[name]
    assert f"limits.{name} = {value}: must be from {least} to {most}" in caught.value.message


def test_a_shell_line_is_a_command() -> None:
    program = program_from_proto(pb.RunRequest(shell="a | b", folder="sub/er"), Program())
    assert (program.argv, program.source, program.folder) == (("sh", "-c", "a | b"), None, "sub/er")


@pytest.mark.parametrize(
    "run",
    [
        pb.RunRequest(),
        pb.RunRequest(command=pb.Command()),
        pb.RunRequest(shell="true", folder="../up"),
        pb.RunRequest(shell="true", folder="/etc"),
        pb.RunRequest(command=pb.Command(argv=["true"], env=["NO_VALUE"])),
        pb.RunRequest(command=pb.Command(argv=["true"], env=["=1"])),
        pb.RunRequest(command=pb.Command(argv=["true"], env=["A=\0"])),
    ],
)
def test_what_is_no_program_is_refused(run: pb.RunRequest) -> None:
    with pytest.raises(JourneymanError) as caught:
        program_from_proto(run, Program())
    assert caught.value.code is ErrorCode.INVALID_INPUT


@pytest.mark.parametrize("sizes", [[], [0], [1, 2, 3], [WRITE_BYTES] * 3, [WRITE_BYTES + 1, 5, 3 * WRITE_BYTES, 0]])
def test_messages_of_moderate_length_make_the_files(sizes: list[int]) -> None:
    files = {f"f{number}": bytes([number]) * size for number, size in enumerate(sizes)}
    made: dict[str, bytes] = {}
    for header, blobs in writes_of(files):
        assert sum(map(len, blobs)) <= WRITE_BYTES
        if header["op"] == "append":
            made[str(header["path"])] += blobs[0]
            continue
        paths = header["paths"]
        assert isinstance(paths, list)
        made.update(zip(map(str, paths), blobs, strict=True))
    assert made == files
