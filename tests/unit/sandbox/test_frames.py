"""Frames survive any cutting of the stream, and nonsense is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_service.adapters.box.frames import FrameError, FrameReader, encode, parse

FRAMES = st.lists(st.tuples(st.text(), st.lists(st.binary(max_size=50), max_size=4)), min_size=1, max_size=4)


@given(frames=FRAMES, piece=st.integers(1, 40))
def test_frames_come_out_as_they_went_in(frames: list[tuple[str, list[bytes]]], piece: int) -> None:
    stream = b"".join(encode({"word": word, "flag": True, "number": 1.5}, blobs) for word, blobs in frames)
    reader = FrameReader()
    found = [frame for start in range(0, len(stream), piece) for frame in reader.feed(stream[start : start + piece])]
    assert [(frame.text("word"), list(frame.blobs)) for frame in found] == frames
    assert all(frame.flag("flag") and frame.number("number") == 1.5 for frame in found)
    assert all(parse(frame.raw).blobs == frame.blobs for frame in found)


@pytest.mark.parametrize(
    "stream",
    [
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x02\0\0\0\0\0\0\0xx",
        b"\x0d\0\0\0\0\0\0\0" + b'{"sizes":[1]}',
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_nonsense_is_refused(stream: bytes) -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(stream)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1 << 64, -(1 << 64)])
def test_numbers_are_of_moderate_size(number: float) -> None:
    with pytest.raises(FrameError):
        parse(encode({"number": number})).number("number")


def test_wrong_types_in_a_header_are_refused() -> None:
    frame = parse(encode({"word": 1, "number": "x", "words": ["a", 2]}))
    for read in (frame.text, frame.texts):
        with pytest.raises(FrameError):
            read("word")
    with pytest.raises(FrameError):
        frame.number("number")
    with pytest.raises(FrameError):
        frame.texts("words")
