"""gRPC edge of the verifier: convert in, call the app, convert out."""

import grpc
from jm.verifier.v1 import verifier_pb2 as verifier
from jm.verifier.v1.verifier_pb2_grpc import VerifierServiceServicer

from journeyman.convert import object_ref_from_proto
from journeyman.errors import ErrorCode, JourneymanError
from verifier_service.app import Verifier


class VerifierServicer(VerifierServiceServicer):
    """Implements jm.verifier.v1.VerifierService."""

    def __init__(self, app: Verifier) -> None:
        self._app = app

    async def VerifyGroup(
        self,
        request: verifier.VerifyGroupRequest,
        context: grpc.aio.ServicerContext[verifier.VerifyGroupRequest, verifier.VerifyGroupResponse],
    ) -> verifier.VerifyGroupResponse:
        if not request.HasField("object"):
            raise JourneymanError(ErrorCode.INVALID_INPUT, "object is missing; name the recorded object to judge")
        judged = await self._app.verify(request.group_id, object_ref_from_proto(request.object))
        return verifier.VerifyGroupResponse(verified=judged.verified)

    async def ListDomains(
        self,
        request: verifier.ListDomainsRequest,
        context: grpc.aio.ServicerContext[verifier.ListDomainsRequest, verifier.ListDomainsResponse],
    ) -> verifier.ListDomainsResponse:
        packs = self._app.list_domains()
        domains = [
            verifier.DomainInfo(name=pack.spec.name, ref=pack.ref, tiers=list(pack.spec.tiers)) for pack in packs
        ]
        return verifier.ListDomainsResponse(domains=domains)
