"""Opens the bus that a setting names. Kafka's client is imported only where it is asked for."""

from pathlib import Path

from journeyman.bus.port import Bus
from journeyman.errors import ErrorCode, JourneymanError


def open_bus(url: str) -> Bus:
    """memory: | sqlite:PATH | kafka://HOST:PORT[,HOST:PORT]. INVALID_INPUT names the value and these forms."""
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        from journeyman.bus.memory import MemoryBus

        return MemoryBus()
    if scheme == "sqlite" and rest:
        from journeyman.bus.sqlite import SqliteBus

        return SqliteBus(Path(rest))
    if scheme == "kafka" and rest.startswith("//") and rest[2:]:
        from journeyman.bus.kafka import KafkaBus

        return KafkaBus(rest[2:].rstrip("/"))
    raise JourneymanError(ErrorCode.INVALID_INPUT, f"bus {url!r}: expected memory:, sqlite:PATH or kafka://HOST:PORT")
