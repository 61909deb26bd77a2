"""A folder for checkpoints whose storage fails as planned, to test how a job copes with it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from penstock.checkpoint.folders import Folder

Operation = Literal["make", "create", "write", "rename", "read", "list", "delete", "any"]
Action = Literal["fail", "lose-answer", "half", "damage", "exit", "exit-after", "slow", "block"]

EXIT_CODE = 137
"""The exit code of a process that a fault has ended."""


@dataclass(frozen=True)
class Fault:
    """What happens at the n-th operation of a kind on files whose path matches, and `times - 1` times after it.

    Operations: `create` begins a file, `write` adds to it, `rename` makes it visible under its name; `read` also asks
    for sizes. Actions: `fail` raises OSError instead of the operation; `lose-answer` raises OSError after it; `half`
    silently keeps half of what is written; `damage` silently changes a byte of it; `exit` ends the process before the
    operation as kill -9 does, halfway through a write; `exit-after` ends it after the operation; `slow` waits `delay_s`
    before it; `block` does not begin it before the test has left `FaultPlan.blocking`.

    >>> Fault("write", at=3, path="*/_metadata", action="half").action
    'half'
    """

    operation: Operation = "any"
    at: int = 1
    times: int = 1
    path: str = "*"
    action: Action = "fail"
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        if self.at < 1 or self.times < 1:
            raise ValueError(f"operations are counted from 1, got at={self.at}, times={self.times}")
        if self.action in ("half", "damage") and self.operation != "write":
            raise ValueError(f"{self.action!r} is for operation 'write', got {self.operation!r}")


@dataclass(frozen=True)
class FaultPlan:
    """Faults, and the record of all operations, kept in a local folder: processes with copies of it count together.

    `FaultyFolder(folder, plan)` is a folder in which they happen.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as notes:
    ...     plan = FaultPlan(notes, (Fault("write", at=2),))
    ...     [plan.fault_at("write", "chk-1/_metadata") is not None for _ in range(3)]
    [False, True, False]
    """

    notes: str
    faults: tuple[Fault, ...] = ()

    def of(self, *faults: Fault) -> FaultPlan:
        """A plan with other faults that keeps its record in the same folder."""
        return FaultPlan(self.notes, faults)

    def operations(self) -> list[str]:
        """All operations so far, `operation path` each, in the order they began."""
        record = Path(self.notes, "operations")
        return record.read_text().splitlines() if record.exists() else []

    @contextlib.contextmanager
    def blocking(self) -> Iterator[None]:
        """Within, operations with the fault `block` do not return, in this process and in others.

        >>> import tempfile, threading
        >>> from penstock.testing import Fault, FaultPlan, FaultyFolder, MemoryFolder
        >>> with tempfile.TemporaryDirectory() as notes:
        ...     plan = FaultPlan(notes, (Fault("write", action="block"),))
        ...     folder = FaultyFolder(MemoryFolder(), plan)
        ...     writing = threading.Thread(target=folder.write, args=("file", b""))
        ...     with plan.blocking():
        ...         writing.start()
        ...         plan.wait_until_blocked("*/file"), folder.names()
        ...     writing.join()
        ...     folder.names()
        (None, [])
        ['file']
        """
        with self._gate() as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(gate, fcntl.LOCK_UN)  # Also if a forked process has inherited it.

    def wait_until_blocked(self, path: str = "*", timeout_s: float = 60) -> None:
        """Wait until an operation on a file whose path matches is blocked, or was; raises TimeoutError."""
        record, deadline = Path(self.notes, "blocked"), time.monotonic() + timeout_s
        while not (record.exists() and any(fnmatch(each, path) for each in record.read_text().splitlines())):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no operation on {path} was blocked within {timeout_s:g} s")
            time.sleep(0.01)

    def _wait_at_gate(self, path: str) -> None:
        self._note("blocked", f"{path}\n")
        with self._gate() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)

    def _gate(self) -> BinaryIO:
        """Locked exclusively as long as operations are to block. The system unlocks it if the test's process ends."""
        os.makedirs(self.notes, exist_ok=True)
        return open(os.path.join(self.notes, "gate"), "ab")

    def fault_at(self, operation: Operation, path: str) -> Fault | None:
        """Record an operation; returns the first fault that is planned for it, None if there is none."""
        self._note("operations", f"{operation} {path}\n")
        due = []
        for number, fault in enumerate(self.faults):
            if fault.operation in (operation, "any") and fnmatch(path, fault.path):
                count = self._note(f"fault-{number}", ".")
                if fault.at <= count < fault.at + fault.times:
                    due.append(fault)
        return due[0] if due else None

    def _note(self, name: str, text: str) -> int:
        """Append to a note; returns its new size, which no other thread or process gets."""
        os.makedirs(self.notes, exist_ok=True)
        with open(os.path.join(self.notes, name), "ab") as note:
            fcntl.flock(note, fcntl.LOCK_EX)
            note.write(text.encode())
            note.flush()
            return os.fstat(note.fileno()).st_size

    @contextlib.contextmanager
    def operation(self, operation: Operation, path: str) -> Iterator[None]:
        """A context for the real operation, in which the planned faults happen."""
        fault = self.fault_at(operation, path)
        if fault is None:
            yield
            return
        if fault.action == "slow":
            time.sleep(fault.delay_s)
        if fault.action == "block":
            self._wait_at_gate(path)
        if fault.action == "exit":
            os._exit(EXIT_CODE)
        if fault.action == "fail":
            raise _injected(operation, path)
        yield
        if fault.action == "exit-after":
            os._exit(EXIT_CODE)
        if fault.action == "lose-answer":
            raise _injected(operation, path)

    def write(self, out: BinaryIO, content: bytes, path: str) -> int:
        """Write `content` with the fault that is planned for it; returns its length."""
        fault = self.fault_at("write", path)
        action = None if fault is None else fault.action
        if fault is not None and action == "slow":
            time.sleep(fault.delay_s)
        if action == "block":
            self._wait_at_gate(path)
        if action == "fail":
            raise _injected("write", path)
        out.write(_changed(content, action))
        if action in ("exit", "exit-after"):
            out.flush()
            os._exit(EXIT_CODE)
        if action == "lose-answer":
            raise _injected("write", path)
        return len(content)


def _changed(content: bytes, action: Action | None) -> bytes:
    if action in ("half", "exit"):
        return content[: len(content) // 2]
    if action == "damage":
        middle = len(content) // 2
        return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :] if content else content
    return content


def _injected(operation: Operation, path: str) -> OSError:
    return OSError(errno.EIO, f"planned fault: {operation}", path)


class _FaultyStream:
    """Passes everything on except writes, which may fail as planned."""

    def __init__(self, out: BinaryIO, plan: FaultPlan, path: str) -> None:
        self._out = out
        self._plan = plan
        self._path = path

    def write(self, content: Any) -> int:
        return self._plan.write(self._out, bytes(content), self._path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


@dataclass(frozen=True)
class FaultyFolder:
    """A folder for checkpoints that passes every operation on to another folder, with faults.

    Its methods are those of `penstock.checkpoint.folders.Folder`.

    >>> import tempfile
    >>> from penstock.testing import Fault, FaultPlan, FaultyFolder, MemoryFolder
    >>> with tempfile.TemporaryDirectory() as notes:
    ...     folder = FaultyFolder(MemoryFolder(), FaultPlan(notes, (Fault("rename", at=2),)))
    ...     folder.write("first", b"1")
    ...     try:
    ...         folder.write("second", b"2")
    ...     except OSError as error:
    ...         print(error.strerror, folder.names())
    planned fault: rename ['first']
    """

    folder: Folder
    plan: FaultPlan

    def within(self, name: str) -> FaultyFolder:
        return FaultyFolder(self.folder.within(name), self.plan)

    @property
    def uri(self) -> str:
        return self.folder.uri

    def path_of(self, name: str) -> str:
        return self.folder.path_of(name)

    def make(self) -> None:
        with self.plan.operation("make", self.uri):
            self.folder.make()

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        path = self.path_of(name)
        with self.plan.operation("create", path):
            pass
        with contextlib.ExitStack() as after_rename, self.folder.create(name) as out:
            yield cast(BinaryIO, _FaultyStream(out, self.plan, path))
            # The real rename happens when this block ends: what raises here prevents it.
            after_rename.enter_context(self.plan.operation("rename", path))

    def open(self, name: str) -> BinaryIO:
        with self.plan.operation("read", self.path_of(name)):
            return self.folder.open(name)

    def size(self, name: str) -> int:
        with self.plan.operation("read", self.path_of(name)):
            return self.folder.size(name)

    def read(self, name: str) -> bytes:
        with self.plan.operation("read", self.path_of(name)):
            return self.folder.read(name)

    def write(self, name: str, content: bytes) -> None:
        with self.create(name) as out:
            out.write(content)

    def names(self) -> list[str]:
        with self.plan.operation("list", self.uri):
            return self.folder.names()

    def delete(self, name: str) -> None:
        with self.plan.operation("delete", self.path_of(name)):
            self.folder.delete(name)

    def delete_all(self) -> None:
        with self.plan.operation("delete", self.uri):
            self.folder.delete_all()
