"""The deadline of the call being served, so that calls made on its behalf get no more time than is left.

Set by the server's interceptor, read by the client's. A background task that a handler starts inherits the handler's context; when the
handler has answered, its deadline binds nobody any more.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class _Served:
    """One call being served."""

    __slots__ = ("end_s",)

    def __init__(self, end_s: float | None) -> None:
        self.end_s = end_s
        """On the monotonic clock; None means unbounded, or answered."""


_served: ContextVar[_Served | None] = ContextVar("served_call", default=None)


@contextmanager
def until(remaining_s: float | None) -> Iterator[None]:
    """Sets the deadline of everything done inside; None means no deadline of its own."""
    served = _Served(None if remaining_s is None else time.monotonic() + remaining_s)
    token = _served.set(served)
    try:
        yield
    finally:
        served.end_s = None
        _served.reset(token)


def shortened(timeout_s: float) -> float:
    """timeout_s, or what is left of the current deadline where that is less; never negative."""
    served = _served.get()
    if served is None or served.end_s is None:
        return timeout_s
    return max(0.0, min(timeout_s, served.end_s - time.monotonic()))
