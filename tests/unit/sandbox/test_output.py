"""What is kept of output: head and tail, and the length of the gap between them."""

from hypothesis import given
from hypothesis import strategies as st

from sandbox_service.core.output import KeptOutput


@given(st.lists(st.binary(max_size=40)), st.integers(1, 50))
def test_head_gap_and_tail_make_the_whole(pieces: list[bytes], keep_bytes: int) -> None:
    kept = KeptOutput(keep_bytes)
    for piece in pieces:
        assert kept.is_too_long_with(len(piece)) == (kept.total_bytes + len(piece) > keep_bytes)
        kept.feed(piece)
    whole = b"".join(pieces)
    assert kept.total_bytes == len(whole)
    assert kept.is_whole == (len(whole) <= keep_bytes)
    if kept.is_whole:
        assert kept.content == whole
        return
    head, tail = kept.content[: kept.head_bytes], kept.content[kept.head_bytes :]
    gap = whole[len(head) : len(whole) - len(tail)]
    assert head + gap + tail == whole
    assert len(head) == keep_bytes // 2
    assert len(head) + len(tail) == keep_bytes


@given(st.lists(st.binary(min_size=1, max_size=64), min_size=20))
def test_memory_is_bounded(pieces: list[bytes]) -> None:
    kept = KeptOutput(16)
    for piece in pieces:
        kept.feed(piece)
        assert len(kept._head) + len(kept._tail) <= 2 * 16 + 64
