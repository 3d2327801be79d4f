"""gRPC edge of the registry: convert in, call the app, convert out."""

import grpc
from jm.registry.v1 import registry_pb2 as registry
from jm.registry.v1.registry_pb2_grpc import RegistryServiceServicer

from registry_service.app import Registry
from registry_service.convert import (
    decision_to_proto,
    gate_request_from_proto,
    policy_to_proto,
    spec_from_proto,
    tally_to_proto,
)


class RegistryServicer(RegistryServiceServicer):
    """Implements jm.registry.v1.RegistryService."""

    def __init__(self, app: Registry) -> None:
        self._app = app

    async def ListPolicies(
        self,
        request: registry.ListPoliciesRequest,
        context: grpc.aio.ServicerContext[registry.ListPoliciesRequest, registry.ListPoliciesResponse],
    ) -> registry.ListPoliciesResponse:
        entries = await self._app.list_policies(request.run_id)
        return registry.ListPoliciesResponse(policies=[policy_to_proto(entry) for entry in entries])

    async def StartEvaluation(
        self,
        request: registry.StartEvaluationRequest,
        context: grpc.aio.ServicerContext[registry.StartEvaluationRequest, registry.StartEvaluationResponse],
    ) -> registry.StartEvaluationResponse:
        standing = await self._app.start_evaluation(spec_from_proto(request))
        return registry.StartEvaluationResponse(evaluation=tally_to_proto(standing))

    async def GetEvaluation(
        self,
        request: registry.GetEvaluationRequest,
        context: grpc.aio.ServicerContext[registry.GetEvaluationRequest, registry.GetEvaluationResponse],
    ) -> registry.GetEvaluationResponse:
        standing = await self._app.get_evaluation(request.evaluation_id)
        return registry.GetEvaluationResponse(evaluation=tally_to_proto(standing))

    async def RunGate(
        self,
        request: registry.RunGateRequest,
        context: grpc.aio.ServicerContext[registry.RunGateRequest, registry.RunGateResponse],
    ) -> registry.RunGateResponse:
        return decision_to_proto(await self._app.run_gate(gate_request_from_proto(request)))

    async def GetChampion(
        self,
        request: registry.GetChampionRequest,
        context: grpc.aio.ServicerContext[registry.GetChampionRequest, registry.GetChampionResponse],
    ) -> registry.GetChampionResponse:
        return registry.GetChampionResponse(policy=policy_to_proto(await self._app.champion()))
