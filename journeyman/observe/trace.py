"""W3C trace context: carried in gRPC metadata and in bus envelopes under the name `traceparent`.

Called by the rpc interceptors, the bus envelope and the consumer loop. Nothing is exported; ids bind log lines of all services together.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TRACEPARENT = "traceparent"
_FORM = re.compile(r"^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$")
_current: ContextVar[str] = ContextVar("traceparent", default="")


def current() -> str:
    """traceparent of the running span; empty outside of any."""
    return _current.get()


def trace_id(traceparent: str) -> str:
    """The 32 hex digits that all spans of a trace share; empty for a malformed or empty value."""
    match = _FORM.match(traceparent)
    return match.group(1) if match else ""


@contextmanager
def span(parent: str = "") -> Iterator[str]:
    """Opens a span below `parent`, or below the current one, or a new trace; yields its traceparent."""
    trace = trace_id(parent) or trace_id(current()) or secrets.token_hex(16)
    traceparent = f"00-{trace}-{secrets.token_hex(8)}-01"
    token = _current.set(traceparent)
    try:
        yield traceparent
    finally:
        _current.reset(token)
