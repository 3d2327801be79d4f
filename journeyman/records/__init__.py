"""The common nouns: frozen, keyword-only dataclasses. Protobuf exists only at the edges (journeyman.convert)."""

from journeyman.records.attribution import Attribution
from journeyman.records.object_ref import ObjectRef
from journeyman.records.policy import LatestPolicy, PolicyRef, PolicySelector, PolicyVersion
from journeyman.records.task import Limits, Message, Role, Split, Task, TaskFile, ToolSpec
from journeyman.records.trajectory import Step, ToolCall, Trajectory
from journeyman.records.verdict import TierResult, Verdict, VerdictStatus

__all__ = [
    "Attribution",
    "LatestPolicy",
    "Limits",
    "Message",
    "ObjectRef",
    "PolicyRef",
    "PolicySelector",
    "PolicyVersion",
    "Role",
    "Split",
    "Step",
    "Task",
    "TaskFile",
    "TierResult",
    "ToolCall",
    "ToolSpec",
    "Trajectory",
    "Verdict",
    "VerdictStatus",
]
