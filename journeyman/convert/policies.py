"""Policy names."""

from jm.common.v1 import common_pb2 as pb

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import LatestPolicy, PolicyRef, PolicySelector, PolicyVersion


def policy_version_to_proto(version: PolicyVersion) -> pb.PolicyVersion:
    """Field by field."""
    return pb.PolicyVersion(incarnation=version.incarnation, step=version.step)


def policy_version_from_proto(message: pb.PolicyVersion) -> PolicyVersion:
    """Field by field."""
    return PolicyVersion(incarnation=message.incarnation, step=message.step)


def policy_ref_to_proto(ref: PolicyRef) -> pb.PolicyRef:
    """Field by field."""
    return pb.PolicyRef(
        run_id=ref.run_id,
        version=policy_version_to_proto(ref.version),
        uri=ref.uri,
        manifest_sha256=ref.manifest_sha256,
    )


def policy_ref_from_proto(message: pb.PolicyRef) -> PolicyRef:
    """INVALID_INPUT when there is no uri."""
    if not message.uri:
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"policy of run {message.run_id!r}: uri is empty; name the artefact's prefix"
        )
    return PolicyRef(
        run_id=message.run_id,
        version=policy_version_from_proto(message.version),
        uri=message.uri,
        manifest_sha256=message.manifest_sha256,
    )


def selector_to_proto(selector: PolicySelector) -> pb.PolicySelector:
    """One of the two ways to choose."""
    if isinstance(selector, LatestPolicy):
        return pb.PolicySelector(latest_of_run=selector.run_id)
    return pb.PolicySelector(pinned=policy_ref_to_proto(selector))


def selector_from_proto(message: pb.PolicySelector) -> PolicySelector:
    """INVALID_INPUT when neither way is chosen."""
    match message.WhichOneof("choice"):
        case "latest_of_run":
            return LatestPolicy(run_id=message.latest_of_run)
        case "pinned":
            return policy_ref_from_proto(message.pinned)
        case _:
            raise JourneymanError(ErrorCode.INVALID_INPUT, "policy: choose latest_of_run or pinned")
