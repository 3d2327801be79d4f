"""Serving: which policy the engine holds. Groups of one selector play together; another selector waits until they are done.

Called by the worker (playing), and run in the background (follow) to take new weights of the run that is being played. Fails closed: a
policy that the engine refused is served to nobody and raises one alert.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from journeyman.errors import JourneymanError
from journeyman.records import LatestPolicy, PolicyRef, PolicySelector
from rollout_service.core.slot_time import SlotTime
from rollout_service.ports import Engine, PolicyRefused, PolicySource, Recorder

log = logging.getLogger(__name__)


class Serving:
    """Loads and swaps policies."""

    def __init__(self, engine: Engine, policies: PolicySource, recorder: Recorder, slot_time: SlotTime) -> None:
        self._engine, self._policies, self._recorder, self._slot_time = engine, policies, recorder, slot_time
        self._selector: PolicySelector | None = None
        self._num_users = 0
        self._turnstile = asyncio.Condition()
        self._loading = asyncio.Lock()
        self._refused: dict[PolicyRef, str] = {}
        self._loaded: PolicyRef | None = None
        self._is_pinned = False

    @property
    def loaded(self) -> PolicyRef | None:
        """What the engine holds, verified; None before the first and after a failure."""
        return self._loaded

    def is_published(self, selector: PolicySelector) -> bool:
        """Whether there is anything to load for it yet."""
        return isinstance(selector, PolicyRef) or self._policies.newest(selector.run_id) is not None

    @asynccontextmanager
    async def playing(self, selector: PolicySelector) -> AsyncIterator[None]:
        """While inside, the engine plays this selector. Waits for the run's first policy. PolicyRefused, or JourneymanError of the store."""
        async with self._turnstile:
            await self._turnstile.wait_for(lambda: self._num_users == 0 or self._selector == selector)
            self._selector = selector
            self._num_users += 1
        try:
            while not self.is_published(selector):
                await self._policies.changed()
            await self._ensure(selector)
            yield
        finally:
            async with self._turnstile:
                self._num_users -= 1
                self._turnstile.notify_all()

    def distrust(self) -> None:
        """After an engine failure: load and verify again before anything else is played."""
        self._loaded = None

    async def follow(self, stop: asyncio.Event) -> None:
        """Takes new weights in flight until stopped."""
        stopping = asyncio.ensure_future(stop.wait())
        while not stop.is_set():
            changed = asyncio.ensure_future(self._policies.changed())
            await asyncio.wait({changed, stopping}, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            selector = self._selector
            if stop.is_set() or not isinstance(selector, LatestPolicy) or not self.is_published(selector):
                continue
            try:
                await self._ensure(selector)
            except PolicyRefused as error:
                log.error("new weights refused", extra={"reason": str(error)})
            except JourneymanError as error:
                log.warning("new weights not read", extra={"reason": error.message})

    async def _ensure(self, selector: PolicySelector) -> None:
        async with self._loading:
            target = selector if isinstance(selector, PolicyRef) else self._policies.newest(selector.run_id)
            is_pinned = isinstance(selector, PolicyRef)
            if target is None or self._selector != selector or (target, is_pinned) == (self._loaded, self._is_pinned):
                return
            if target in self._refused:
                raise PolicyRefused(self._refused[target])
            await self._load(target, is_pinned=is_pinned)

    async def _load(self, target: PolicyRef, *, is_pinned: bool) -> None:
        started_s = time.monotonic()
        try:
            pause_s = await self._engine.load(target, is_pinned=is_pinned)
        except PolicyRefused as error:
            self._refused[target] = str(error)
            await self._recorder.alert(
                "engine.policy_refused", f"{error}. The worker serves nothing for {target.name}; publish it again."
            )
            raise
        now_s = time.monotonic()
        self._slot_time.charge_swap(pause_s, now_s)
        self._loaded, self._is_pinned = target, is_pinned
        log.info("policy loaded", extra={"policy": target.name, "load_s": now_s - started_s, "pause_s": pause_s})
