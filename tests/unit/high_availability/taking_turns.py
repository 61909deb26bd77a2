"""Threads that do one operation on a folder at a time, in the order that a test chooses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.testing import MemoryFolder


class Stopped(BaseException):
    """The actor must not continue: its process was killed."""


class Actor:
    """Runs a function in a thread; it waits before each operation on a `TurnFolder`."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._changed = threading.Condition()
        self._may_go = False
        self._is_waiting = False
        self._is_stopped = False
        self.has_ended = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.actor = self  # type: ignore[attr-defined]
        self._thread.start()
        self._settle()

    def _run(self) -> None:
        try:
            self._function()
        except Stopped:
            pass
        except BaseException as failure:  # The test looks at it
            self.failure = failure
        with self._changed:
            self.has_ended = True
            self._changed.notify_all()

    def wait_for_turn(self) -> None:
        with self._changed:
            self._is_waiting = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._may_go or self._is_stopped)
            self._is_waiting = self._may_go = False
            if self._is_stopped:
                raise Stopped

    def step(self) -> None:
        """One operation, if it has not ended."""
        with self._changed:
            if self.has_ended:
                return
            self._may_go = True
            self._is_waiting = False
            self._changed.notify_all()
        self._settle()

    def _settle(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_waiting or self.has_ended)

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._thread.join()

    def finish(self) -> None:
        while not self.has_ended:
            self.step()


def take_turn() -> None:
    actor = getattr(threading.current_thread(), "actor", None)
    if actor is not None:
        actor.wait_for_turn()


@dataclass(frozen=True)
class TurnFolder:
    """A folder in memory; threads that are actors take turns at it, others do not wait."""

    folder: MemoryFolder

    def within(self, name: str) -> TurnFolder:
        return TurnFolder(self.folder.within(name))

    @property
    def uri(self) -> str:
        return self.folder.uri

    def path_of(self, name: str) -> str:
        return self.folder.path_of(name)

    def make(self) -> None:
        self.folder.make()

    def create(self, name: str) -> Any:
        raise NotImplementedError("leaders write whole files")

    def open(self, name: str) -> BinaryIO:
        take_turn()
        return self.folder.open(name)

    def size(self, name: str) -> int:
        take_turn()
        return self.folder.size(name)

    def read(self, name: str) -> bytes:
        take_turn()
        return self.folder.read(name)

    def write(self, name: str, content: bytes) -> None:
        take_turn()
        self.folder.write(name, content)

    def names(self) -> list[str]:
        take_turn()
        return self.folder.names()

    def delete(self, name: str) -> None:
        take_turn()
        self.folder.delete(name)

    def delete_all(self) -> None:
        take_turn()
        self.folder.delete_all()
