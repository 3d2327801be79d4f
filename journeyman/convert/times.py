"""Seconds as floats inside, Duration and Timestamp on the wire."""

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def seconds_to_duration(seconds: float) -> Duration:
    """Rounded to nanoseconds."""
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration


def seconds_from_duration(duration: Duration) -> float:
    """Seconds."""
    return duration.ToNanoseconds() / 1e9


def timestamp_from_unix_s(unix_s: float) -> Timestamp:
    """From seconds since the epoch."""
    timestamp = Timestamp()
    timestamp.FromNanoseconds(round(unix_s * 1e9))
    return timestamp


def unix_s_from_timestamp(timestamp: Timestamp) -> float:
    """Seconds since the epoch."""
    return timestamp.ToNanoseconds() / 1e9
