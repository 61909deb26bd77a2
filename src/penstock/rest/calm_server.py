"""uvicorn's server for a thread beside a job: it wakes up for requests, and otherwise once a second."""

from __future__ import annotations

import asyncio
import contextlib

import uvicorn

_TICK_S = 1.0


class CalmServer(uvicorn.Server):
    """uvicorn checks ten times a second whether it is to end. Here it is notified instead."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._woken.wait(), _TICK_S)

    def end(self) -> None:
        """From another thread: finish the answers that are on their way, and stop."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # It has ended already.
                self._loop.call_soon_threadsafe(self._woken.set)
