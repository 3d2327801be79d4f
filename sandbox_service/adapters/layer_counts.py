"""Which layers are still wanted, by boxes that stand on them or by saved files. Used by LinkedBackend and its boxes."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence

from sandbox_service.adapters.launching import Launcher


class LayerCounts:
    """Numbers new layers and lets the launcher drop those that nobody holds any more."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._num_made = 0
        self._num_holders: Counter[int] = Counter()

    def new(self) -> int:
        """A number for a layer that is about to be made."""
        self._num_made += 1
        return self._num_made

    def hold(self, layers: Sequence[int]) -> None:
        """One more holder of each."""
        self._num_holders.update(layers)

    @contextlib.contextmanager
    def held_unless_failed(self, layers: Sequence[int]) -> Iterator[None]:
        """One more holder of each; not where the block fails, for which nobody else has to do anything then."""
        self.hold(layers)
        is_done = False
        try:
            yield
            is_done = True
        finally:
            if not is_done:
                self.release(layers)

    def release(self, layers: Sequence[int]) -> None:
        """One holder less of each."""
        for layer in layers:
            self._num_holders[layer] -= 1
            if self._num_holders[layer] <= 0:
                del self._num_holders[layer]
                self._launcher.drop(layer)

    def __len__(self) -> int:
        return len(self._num_holders)
