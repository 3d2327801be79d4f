"""Deployment knobs of the sandbox service: SANDBOX_* in the environment."""

import sys

from pydantic_settings import SettingsConfigDict

from journeyman.settings import ServiceSettings
from sandbox_service.adapters.isolation import AUTO, UID_FIRST
from sandbox_service.adapters.zygote_process import MAX_SPARES
from sandbox_service.core.shape import MIB


class SandboxSettings(ServiceSettings):
    """Read once by __main__."""

    model_config = SettingsConfigDict(env_prefix="SANDBOX_")

    isolation: str = AUTO
    """auto | ns-root | ns-rootless | bwrap | runsc | weak. auto takes the first of these, but weak, that works."""
    allow_weak: bool = False
    """Whether programs may be run almost unprotected where nothing better works. Also --allow-weak."""
    python: str = sys.executable
    """Interpreter of the boxes."""
    uid_first: int = UID_FIRST
    """First of 65,000 uids of this host that boxes have where the service is root."""
    max_boxes: int = 1024
    """Living boxes at most, and as many snapshots; each holds the files that its box wrote since the snapshot before."""
    max_spares: int = MAX_SPARES
    """Boxes made ahead of demand at most; as many as were asked for in the last ten seconds are. Only of namespaces."""
    parallel_runs: int = 0
    """Programs running at once; 0 means two for each CPU. A program's time limits begin when it does."""
    memory_mib: int = 512
    """Memory of a box where a request names none."""
    disk_mib: int = 64
    max_files: int = 4096
    max_processes: int = 64
    output_kib: int = 64
    """Kept of each of stdout and stderr."""
    timeout_s: float = 5.0
    """Wall limit of a program where a request names none."""
    cpu_s: float = 2.0

    @property
    def memory_bytes(self) -> int:
        """memory_mib in bytes."""
        return self.memory_mib * MIB

    @property
    def disk_bytes(self) -> int:
        """disk_mib in bytes."""
        return self.disk_mib * MIB

    @property
    def output_bytes(self) -> int:
        """output_kib in bytes."""
        return self.output_kib * 1024
