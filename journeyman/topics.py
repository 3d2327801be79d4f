"""The single list of topics: name, payload field of the envelope, number of partitions, who publishes, who consumes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic. Group topics are keyed by group_id, policy topics by run_id."""

    name: str
    payload: str
    """Field of jm.events.v1.Envelope that its records carry."""
    partitions: int
    published_by: tuple[str, ...]
    consumed_by: tuple[str, ...]


TASK_SUBMITTED = Topic(
    name="task.submitted", payload="task_submitted", partitions=2, published_by=("client",), consumed_by=("scheduler",)
)
TRAJECTORY_RECORDED = Topic(
    name="trajectory.recorded",
    payload="trajectory_recorded",
    partitions=4,
    published_by=("rollout",),
    consumed_by=("scheduler", "verifier"),
)
TRAJECTORY_VERIFIED = Topic(
    name="trajectory.verified",
    payload="trajectory_verified",
    partitions=4,
    published_by=("verifier",),
    consumed_by=("scheduler",),
)
GROUP_READY = Topic(
    name="group.ready", payload="group_ready", partitions=1, published_by=("scheduler",), consumed_by=("trainer",)
)
GROUP_TAKEN = Topic(
    name="group.taken", payload="group_taken", partitions=2, published_by=("trainer",), consumed_by=("scheduler",)
)
GROUP_COMMITTED = Topic(
    name="group.committed",
    payload="group_committed",
    partitions=2,
    published_by=("trainer",),
    consumed_by=("scheduler",),
)
GROUP_DROPPED = Topic(
    name="group.dropped",
    payload="group_dropped",
    partitions=2,
    published_by=("scheduler", "trainer"),
    consumed_by=("scheduler",),
)
GROUP_CLOSED = Topic(
    name="group.closed", payload="group_closed", partitions=2, published_by=("scheduler",), consumed_by=("registry",)
)
POLICY_PUBLISHED = Topic(
    name="policy.published",
    payload="policy_published",
    partitions=1,
    published_by=("trainer",),
    consumed_by=("rollout", "scheduler", "registry"),
)
POLICY_PROMOTED = Topic(
    name="policy.promoted", payload="policy_promoted", partitions=1, published_by=("registry",), consumed_by=()
)
POLICY_REJECTED = Topic(
    name="policy.rejected", payload="policy_rejected", partitions=1, published_by=("registry",), consumed_by=()
)
ALERT_RAISED = Topic(name="alert.raised", payload="alert_raised", partitions=1, published_by=("any",), consumed_by=())
DEAD_LETTER = Topic(name="dead.letter", payload="dead_letter", partitions=1, published_by=("any",), consumed_by=())

TOPICS: dict[str, Topic] = {
    topic.name: topic
    for topic in (
        TASK_SUBMITTED,
        TRAJECTORY_RECORDED,
        TRAJECTORY_VERIFIED,
        GROUP_READY,
        GROUP_TAKEN,
        GROUP_COMMITTED,
        GROUP_DROPPED,
        GROUP_CLOSED,
        POLICY_PUBLISHED,
        POLICY_PROMOTED,
        POLICY_REJECTED,
        ALERT_RAISED,
        DEAD_LETTER,
    )
}
