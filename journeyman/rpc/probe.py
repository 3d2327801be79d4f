"""Health probe for containers and scripts: `python -m journeyman.rpc.probe HOST:PORT` exits 0 only where the server there is SERVING.

Called by the health checks of docker-compose.yml. It needs nothing but gRPC, so it works in every service's image.
"""

import sys

import click
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


def is_serving(target: str, timeout_s: float) -> tuple[bool, str]:
    """Whether the whole server says SERVING, and what it said or why it could not be asked."""
    with grpc.insecure_channel(target) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=timeout_s)
        except grpc.RpcError as error:
            return False, f"{error.code().name}: {error.details()}"
    name = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return answer.status == health_pb2.HealthCheckResponse.SERVING, str(name)


@click.command()
@click.argument("target")
@click.option("--timeout-s", default=3.0, show_default=True, help="How long to wait for an answer.")
def main(target: str, timeout_s: float) -> None:
    """Asks the gRPC health service at TARGET (host:port)."""
    serving, words = is_serving(target, timeout_s)
    click.echo(f"{target}: {words}", err=not serving)
    sys.exit(0 if serving else 1)


if __name__ == "__main__":
    main()
