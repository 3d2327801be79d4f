"""The calculator agrees with Python where it computes, and gives None for everything else, quickly."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from journeyman.packs.arithmetic import MAX_CHARS, evaluate, read_integer

expressions = st.recursive(
    st.integers(0, 999).map(str),
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*"), inner).map("".join)
        | inner.map("({})".format)
        | inner.map("-{}".format)
    ),
    max_leaves=6,
)


@given(expressions)
def test_it_agrees_with_python(expression: str) -> None:
    plain = re.sub(r"\b0+(?=\d)", "", expression)
    expected = eval(plain) if len(plain) <= MAX_CHARS else None
    assert evaluate(plain) == expected


@given(st.text() | st.text("0123456789+-*() ", max_size=MAX_CHARS))
def test_any_text_is_answered(text: str) -> None:
    assert evaluate(text) is None or isinstance(evaluate(text), int)


def test_what_is_not_arithmetic_is_refused() -> None:
    for text in (
        "",
        "1+",
        "2**3",
        "9**9**9",
        "1//2",
        "1/2",
        "a",
        "__import__('os')",
        "(1",
        "1)",
        "1 2",
        "1.5",
        "٣+٣",
        "1" * 25,
    ):
        assert evaluate(text) is None, text


def test_nesting_ends_at_once() -> None:
    started_s = time.perf_counter()
    assert evaluate("(" * 12 + "1" + ")" * 11) is None
    assert evaluate("-" * 23 + "1") == -1
    assert time.perf_counter() - started_s < 0.1


def test_integers_are_plain_digits() -> None:
    assert read_integer(" -7 ") == -7
    assert read_integer("+7") == 7
    for text in (None, "", "7.0", "1_0", "٣", "seven", "7 8", "7\n8", "9" * 19):
        assert read_integer(text) is None
