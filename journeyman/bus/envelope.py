"""Facts on their way to and from the bus: payload -> Envelope -> Outgoing, and back."""

import hashlib

from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from jm.events.v1 import events_pb2 as ev

from journeyman.bus.port import Bus, Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.observe import trace
from journeyman.topics import TOPICS

_FIELD_OF = {
    getattr(field.message_type, "full_name", ""): field.name  # every member of this oneof is a message
    for field in ev.Envelope.DESCRIPTOR.oneofs_by_name["payload"].fields
}
_TOPIC_OF = {topic.payload: topic.name for topic in TOPICS.values()}


def event_id(*parts: object) -> str:
    """The same parts always give the same id: 32 hex digits. Redoing an effect then repeats its fact instead of making a new one."""
    return hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).hexdigest()[:32]


def wrap(payload: Message, *, event_id: str, run_id: str = "", causation_id: str = "") -> ev.Envelope:
    """An envelope around one of the payload messages, stamped with the time and the current trace."""
    field = _FIELD_OF[payload.DESCRIPTOR.full_name]
    now = Timestamp()
    now.GetCurrentTime()
    envelope = ev.Envelope(
        event_id=event_id, occurred_at=now, run_id=run_id, causation_id=causation_id, traceparent=trace.current()
    )
    getattr(envelope, field).CopyFrom(payload)
    return envelope


def outgoing(envelope: ev.Envelope, key: str) -> Outgoing:
    """A record for the topic that carries this kind of payload."""
    field = envelope.WhichOneof("payload")
    if field is None:
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"envelope {envelope.event_id!r} has no payload")
    headers = {trace.TRACEPARENT: envelope.traceparent} if envelope.traceparent else {}
    return Outgoing(topic=_TOPIC_OF[field], key=key, value=envelope.SerializeToString(), headers=headers)


def parse(value: bytes) -> ev.Envelope:
    """CORRUPT when the bytes are no envelope with a payload."""
    try:
        envelope = ev.Envelope.FromString(value)
    except DecodeError as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"record of {len(value)} bytes is no envelope: {error}") from error
    if envelope.WhichOneof("payload") is None:
        raise JourneymanError(ErrorCode.CORRUPT, f"envelope {envelope.event_id!r} has no payload this version knows")
    return envelope


async def publish(bus: Bus, key: str, payload: Message, *, event_id: str, run_id: str = "") -> None:
    """Wraps and publishes one fact."""
    await bus.publish([outgoing(wrap(payload, event_id=event_id, run_id=run_id), key)])
