"""Records <-> protobuf, at the edges only. Total functions: every record converts; an unknown or missing enum is INVALID_INPUT."""

from journeyman.convert.enums import attribution_from_proto, attribution_to_proto, split_from_proto, split_to_proto
from journeyman.convert.policies import (
    policy_ref_from_proto,
    policy_ref_to_proto,
    policy_version_from_proto,
    policy_version_to_proto,
    selector_from_proto,
    selector_to_proto,
)
from journeyman.convert.tasks import object_ref_from_proto, object_ref_to_proto, task_from_proto, task_to_proto
from journeyman.convert.times import (
    seconds_from_duration,
    seconds_to_duration,
    timestamp_from_unix_s,
    unix_s_from_timestamp,
)
from journeyman.convert.verdicts import verdict_from_proto, verdict_to_proto

__all__ = [
    "attribution_from_proto",
    "attribution_to_proto",
    "object_ref_from_proto",
    "object_ref_to_proto",
    "policy_ref_from_proto",
    "policy_ref_to_proto",
    "policy_version_from_proto",
    "policy_version_to_proto",
    "seconds_from_duration",
    "seconds_to_duration",
    "selector_from_proto",
    "selector_to_proto",
    "split_from_proto",
    "split_to_proto",
    "task_from_proto",
    "task_to_proto",
    "timestamp_from_unix_s",
    "unix_s_from_timestamp",
    "verdict_from_proto",
    "verdict_to_proto",
]
