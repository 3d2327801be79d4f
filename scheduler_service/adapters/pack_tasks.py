"""PackTasks: tasks, levels and reward rules from the domain packs on this machine. Implements planning.TaskSource."""

from journeyman.packs.load import load_pack
from journeyman.packs.port import RewardRule
from journeyman.records import Split, Task


class PackTasks:
    """Packs are loaded once and kept by journeyman.packs.load."""

    def levels(self, domain: str) -> tuple[int, ...]:
        return load_pack(domain).spec.levels

    def ref(self, domain: str) -> str:
        return load_pack(domain).ref

    def reward_rule(self, domain: str) -> RewardRule:
        return load_pack(domain).spec.reward

    def task(self, domain: str, split: Split, level: int, seed: int) -> Task:
        return next(load_pack(domain).tasks(split, level, seed))
