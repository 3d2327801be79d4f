"""Rate: tokens and entropy over the last few seconds, for screens. Written by a decode thread, read by the event loop."""

import time
from collections import deque

from rollout_service.ports import EngineFigures

WINDOW_S = 5.0


class Rate:
    """Adds up what was sampled."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int, float]] = deque()
        self._total = 0

    def add(self, num_tokens: int, entropy_sum: float) -> None:
        """One tick's tokens and the sum of their entropies in nats."""
        now_s = time.monotonic()
        self._total += num_tokens
        self._recent.append((now_s, num_tokens, entropy_sum))
        while self._recent[0][0] < now_s - WINDOW_S:
            self._recent.popleft()

    def figures(self) -> EngineFigures:
        """As of now."""
        oldest_s = time.monotonic() - WINDOW_S
        recent = [entry for entry in self._recent.copy() if entry[0] >= oldest_s]
        num_tokens = sum(count for _, count, _ in recent)
        entropy = sum(total for _, _, total in recent) / num_tokens if num_tokens else 0.0
        return EngineFigures(sampled_tokens=self._total, tokens_per_s=num_tokens / WINDOW_S, entropy=entropy)
