"""Prometheus metrics that every service shares, and the endpoint that serves them. Labels are bounded: never ids."""

from prometheus_client import Counter, Histogram, start_http_server

from journeyman.errors import ErrorCode, JourneymanError

RPC_SECONDS = Histogram("journeyman_rpc_seconds", "Time to answer an RPC.", ("method", "status"))
BUS_HANDLED_TOTAL = Counter("journeyman_bus_handled_total", "Bus records handled.", ("topic", "outcome"))
BUS_HANDLE_SECONDS = Histogram("journeyman_bus_handle_seconds", "Time to handle a batch of bus records.", ("topic",))


def serve(listen: str) -> None:
    """Serves /metrics on host:port from a thread of its own. INVALID_INPUT when the port is taken."""
    host, _, port = listen.rpartition(":")
    try:
        start_http_server(int(port), addr=host or "127.0.0.1")
    except (OSError, ValueError, OverflowError) as error:
        message = f"setting METRICS_LISTEN={listen!r}: cannot serve metrics there ({error}); choose a free host:port"
        raise JourneymanError(ErrorCode.INVALID_INPUT, message) from error
