"""ScriptedTasks: a source of tasks without domain packs, for tests of whatever plans tasks. Every answer follows from its arguments."""

from collections.abc import Mapping

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.port import RewardRule
from journeyman.records import Limits, Message, Role, Split, Task

PLAIN = RewardRule(turn_cost=0.05, partial_weight=0.4, all_failed_trains=False)


class ScriptedTasks:
    """Domains by name with their levels."""

    def __init__(self, domains: Mapping[str, tuple[int, ...]], rule: RewardRule = PLAIN) -> None:
        self._domains = dict(domains)
        self._rule = rule

    def levels(self, domain: str) -> tuple[int, ...]:
        """NOT_FOUND for an unknown domain."""
        if domain not in self._domains:
            raise JourneymanError(ErrorCode.NOT_FOUND, f"no domain {domain!r}; known: {', '.join(self._domains)}")
        return self._domains[domain]

    def ref(self, domain: str) -> str:
        """name@version+digest."""
        self.levels(domain)
        return f"{domain}@1+0123456789ab"

    def reward_rule(self, domain: str) -> RewardRule:
        """The same for all domains."""
        return self._rule

    def task(self, domain: str, split: Split, level: int, seed: int) -> Task:
        """A task that says what it is."""
        return Task(
            task_id=f"{domain}/{split}/{level}/{seed}",
            domain=domain,
            domain_ref=self.ref(domain),
            split=split,
            level=level,
            seed=seed,
            messages=(Message(role=Role.USER, content=f"{domain} {level} {seed}"),),
            tools=(),
            files=(),
            limits=Limits(max_turns=3, max_turn_tokens=16, max_tokens=128, tool_cpu_s=1.0),
            verification_json="{}",
        )
