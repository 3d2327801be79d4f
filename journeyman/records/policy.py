"""Policy names: a version inside a run's lineage, a reference to its artefact, and how a lease selects one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PolicyVersion:
    """(trainer incarnation, step): weights made before a crash and after it never share a name."""

    incarnation: int
    step: int
    """Optimiser steps since the run's base policy; 0 is the base."""

    def __str__(self) -> str:
        return f"{self.incarnation}.{self.step}"

    def pack(self) -> int:
        """One int64 for per-token storage: incarnation in the high 32 bits."""
        return self.incarnation << 32 | self.step

    @classmethod
    def unpack(cls, packed: int) -> "PolicyVersion":
        """Inverse of pack."""
        return cls(incarnation=packed >> 32, step=packed & 0xFFFFFFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRef:
    """Weights and where they are."""

    run_id: str
    version: PolicyVersion
    uri: str
    """Prefix in the object store, no trailing slash: policies/RUN/INCARNATION.STEP."""
    manifest_sha256: str

    @property
    def name(self) -> str:
        """Short unique name: RUN/INCARNATION.STEP."""
        return f"{self.run_id}/{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestPolicy:
    """Selects the newest policy published for a run."""

    run_id: str


PolicySelector = LatestPolicy | PolicyRef
