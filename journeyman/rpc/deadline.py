"""The deadline of the call being served, so that calls made on its behalf get no more time than is left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float | None] = ContextVar("deadline_monotonic_s", default=None)


@contextmanager
def until(remaining_s: float | None) -> Iterator[None]:
    """Sets the deadline of everything done inside; None means no deadline of its own."""
    token = _until.set(None if remaining_s is None else time.monotonic() + remaining_s)
    try:
        yield
    finally:
        _until.reset(token)


def shortened(timeout_s: float) -> float:
    """timeout_s, or what is left of the current deadline where that is less; never negative."""
    end = _until.get()
    return timeout_s if end is None else max(0.0, min(timeout_s, end - time.monotonic()))
