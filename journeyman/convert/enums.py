"""Closed enums of the records and their protobuf twins."""

from enum import StrEnum
from typing import TypeVar, cast

from jm.common.v1 import common_pb2 as pb
from jm.events.v1 import events_pb2 as ev

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import Attribution, Role, Split, VerdictStatus

E = TypeVar("E", bound=StrEnum)
N = TypeVar("N", bound=int)

_ATTRIBUTION = {item: cast("pb.Attribution", pb.Attribution.Value(f"ATTRIBUTION_{item.name}")) for item in Attribution}
_SPLIT = {item: cast("pb.Split", pb.Split.Value(f"SPLIT_{item.name}")) for item in Split}
_ROLE = {item: cast("pb.Role", pb.Role.Value(f"ROLE_{item.name}")) for item in Role}
_STATUS = {
    item: cast("ev.VerdictStatus", ev.VerdictStatus.Value(f"VERDICT_STATUS_{item.name}")) for item in VerdictStatus
}


def _reverse(table: dict[E, N], value: int, field: str) -> E:
    for item, number in table.items():
        if number == value:
            return item
    allowed = ", ".join(f"{number} ({item.value})" for item, number in table.items())
    raise JourneymanError(ErrorCode.INVALID_INPUT, f"{field}: unknown value {value}; allowed are {allowed}")


def attribution_to_proto(attribution: Attribution) -> pb.Attribution:
    """Never UNSPECIFIED."""
    return _ATTRIBUTION[attribution]


def attribution_from_proto(value: int) -> Attribution:
    """INVALID_INPUT for UNSPECIFIED; callers for whom it means "none" ask before."""
    return _reverse(_ATTRIBUTION, value, "attribution")


def split_to_proto(split: Split) -> pb.Split:
    """Never UNSPECIFIED."""
    return _SPLIT[split]


def split_from_proto(value: int) -> Split:
    """INVALID_INPUT for UNSPECIFIED."""
    return _reverse(_SPLIT, value, "split")


def role_to_proto(role: Role) -> pb.Role:
    """Never UNSPECIFIED."""
    return _ROLE[role]


def role_from_proto(value: int) -> Role:
    """INVALID_INPUT for UNSPECIFIED."""
    return _reverse(_ROLE, value, "role")


def verdict_status_to_proto(status: VerdictStatus) -> ev.VerdictStatus:
    """Never UNSPECIFIED."""
    return _STATUS[status]


def verdict_status_from_proto(value: int) -> VerdictStatus:
    """INVALID_INPUT for UNSPECIFIED."""
    return _reverse(_STATUS, value, "status")
