"""Learner: a model with its optimisers, worked on in one thread of its own, away from the event loop; saved and restored whole."""

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.model.qwen3 import Qwen3

Result = TypeVar("Result")


class ComputeThread:
    """The only thread that computes with torch."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="trainer-compute")

    async def run(self, work: Callable[[], Result], *, threads: int) -> Result:
        """Runs work there with so many torch threads."""

        def limited() -> Result:
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            return work()

        return await asyncio.get_running_loop().run_in_executor(self._executor, limited)

    def close(self) -> None:
        """Waits for what runs."""
        self._executor.shutdown(wait=True)


class Learner:
    """What a checkpoint holds besides its state."""

    def __init__(
        self,
        model: Qwen3,
        tokenizer: ChatTokenizer,
        optimisers: Sequence[torch.optim.Optimizer],
        rates: Sequence[float],
    ) -> None:
        self.model, self.tokenizer, self.optimisers, self._rates = model, tokenizer, optimisers, rates

    def set_factor(self, factor: float) -> None:
        """Learning rates as shares of their peaks."""
        for optimiser, rate in zip(self.optimisers, self._rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor

    def dump(self) -> bytes:
        """Weights and optimiser states."""
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimisers": [o.state_dict() for o in self.optimisers]}, buffer)
        return buffer.getvalue()

    def restore(self, data: bytes) -> None:
        """What dump gave."""
        saved: Mapping[str, object] = torch.load(io.BytesIO(data), weights_only=True)
        model, optimisers = saved["model"], saved["optimisers"]
        assert isinstance(model, dict)
        assert isinstance(optimisers, list)
        self.model.load(model)
        for optimiser, state in zip(self.optimisers, optimisers, strict=True):
            optimiser.load_state_dict(state)
