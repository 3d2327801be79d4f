"""JSON log lines: fixed event names, key-values, and the ids bound by the edge that is being served.

`setup` is called once by journeyman.lifecycle.run; everywhere else it is `logging.getLogger(__name__).info("event name", extra={...})`.
"""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

from journeyman.observe import trace

_bound: ContextVar[dict[str, str]] = ContextVar("bound_ids")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def bound(**ids: str) -> Iterator[None]:
    """Adds ids (run_id, group_id, event_id, ...) to every line logged inside."""
    token = _bound.set({**_bound.get({}), **ids})
    try:
        yield
    finally:
        _bound.reset(token)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, service, event, logger, ids, extras, traceback."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """Values that are not JSON are written as their str()."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "event": record.getMessage(),
            "logger": record.name,
            **_bound.get({}),
        }
        if trace_id := trace.trace_id(trace.current()):
            line["trace_id"] = trace_id
        line.update({name: value for name, value in vars(record).items() if name not in _STANDARD})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def setup(service: str, path: Path | None) -> None:
    """Sends the root logger's lines, INFO and above, to the file (appending) or to standard error."""
    handler: logging.Handler
    if path is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(JsonLines(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.raiseExceptions = False  # a full disk must not flood standard error with the logger's own tracebacks
