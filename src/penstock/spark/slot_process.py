"""A process of its own for each slot of a job, in which its subtasks live from epoch to epoch.

Spark hands a partition to whichever Python worker is free, so a subtask would wake up in another process every other
epoch, without its function objects and with its state to be read anew. So a Spark task does no more than pass rows on
to the process of its slot on the same host, which it starts the first time. The process ends with the run of the job:
when the run's folder is gone, or Spark's Python daemon that started it, or the job has said that an epoch is its last.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from penstock.checkpoint.folders import Folder
from penstock.common.exceptions import EnvironmentSetupError
from penstock.runtime.failure import describe_failure
from penstock.runtime.rows import FAILURE, Row
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, TaskHost, forget_run

_LENGTH = struct.Struct("<Q")
_WATCH_S = 0.5
_END = b""
_GRACE_S = 5
"""How long a user function that is still running may go on after its job has ended."""
_LONGEST_FOLDER = 60


@dataclass(frozen=True)
class SlotRequest:
    """One slot's part of an epoch, without its rows."""

    stage: int
    slot: int
    deployment_id: str
    folder: Folder
    command: EpochCommand

    def for_slot(self, slot: int) -> SlotRequest:
        return replace(self, slot=slot)


def run_in_slot_process(
    request: SlotRequest, rows: Iterable[Row], pickled_deployment: Callable[[], bytes]
) -> Iterator[Row]:
    """Have the slot's process run the epoch on `rows`; the rows that it gives."""
    with _connected(request) as connection, cast(BinaryIO, connection.makefile("rwb")) as stream:
        _send(stream, pickle.dumps(request))
        for row in rows:
            _send(stream, pickle.dumps(row))
        _send(stream, _END)
        stream.flush()
        if _receive(stream) == b"deployment?":
            _send(stream, pickled_deployment())
            stream.flush()
        while (answer := _receive(stream)) != _END:
            yield pickle.loads(answer)


def _connected(request: SlotRequest) -> socket.socket:
    path = _socket_path(request)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        _start(path, request.command.run_folder)
        connection.connect(path)
    return connection


def _socket_path(request: SlotRequest) -> str:
    return str(_socket_folder() / f"{request.command.run_id}-{request.slot}")


def _socket_folder() -> Path:
    """A folder that only this user can enter, with a name short enough for a socket's address."""
    name = f"penstock-slots-{os.getuid()}"
    folder = Path(tempfile.gettempdir(), name)
    if len(str(folder)) > _LONGEST_FOLDER:
        folder = Path("/tmp", name)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise EnvironmentSetupError(
            f"{folder} must belong to user {os.getuid()} alone (mode 700), because jobs are handed over in it; remove "
            f"it, or set TMPDIR to another folder"
        )
    return folder


def _start(path: str, run_folder: str) -> None:
    """Fork the slot's process. The socket listens before, so that whoever connects next finds it."""
    Path(path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    daemon = os.getppid()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:  # A grandchild: nobody here has to wait for its end.
            _become_slot_process(listener, path, run_folder, daemon)
        os._exit(0)
    os.waitpid(child, 0)
    listener.close()


def _become_slot_process(listener: socket.socket, path: str, run_folder: str, daemon: int) -> None:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (signal.SIGTERM, signal.SIGHUP):  # Spark's Python daemon ends its group by a hang-up.
            signal.signal(each, lambda *_: _leave(path))
        # What the worker had open (its connection to Spark above all) must not stay open here.
        listening = os.dup2(listener.fileno(), 3) if listener.fileno() != 3 else 3
        os.closerange(4, 4096)
        # Records come and go by the thousand: with the default of 700 the collector runs for nothing most of the time.
        gc.set_threshold(100_000, 50, 100)
        SlotProcess(socket.socket(fileno=listening), path, run_folder, daemon).serve()
    except BaseException as error:
        print(f"penstock slot process: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


class SlotProcess:
    """Serves one request after the other; keeps the job's deployment, and through TaskHost its subtasks."""

    def __init__(self, listener: socket.socket, path: str, run_folder: str, daemon: int) -> None:
        self._listener = listener
        self._path = path
        self._run_folder = run_folder
        self._daemon = daemon
        self._deployments: dict[str, JobDeployment] = {}

    def serve(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()
        self._listener.settimeout(_WATCH_S)
        is_last = False
        while not is_last and self._is_wanted():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            # A Spark task that was killed hangs up in the middle: the epoch is repeated by another request.
            hung_up = contextlib.suppress(BrokenPipeError, ConnectionResetError, EOFError)
            with hung_up, connection, cast(BinaryIO, connection.makefile("rwb")) as stream:
                is_last = self._answer(stream)
        forget_run(Path(self._run_folder).name)
        self._end()

    def _answer(self, stream: BinaryIO) -> bool:
        """True if the job ends with this epoch."""
        request: SlotRequest = pickle.loads(_receive(stream))
        rows = []
        while (frame := _receive(stream)) != _END:
            rows.append(pickle.loads(frame))
        try:
            deployment = self._deployment(request, stream)
        except Exception as error:  # A module that is missing here, a class that does not load: told to the driver.
            _send(stream, pickle.dumps(_not_loaded(error, request.slot)))
            _send(stream, _END)
            stream.flush()
            return False
        for row in TaskHost(deployment, request.folder, request.command).run(request.stage, request.slot, rows):
            _send(stream, pickle.dumps(row))
        _send(stream, _END)
        stream.flush()
        last_stage = max(v.stage for v in deployment.vertices() if request.slot < v.parallelism)
        return request.command.is_last and request.stage == last_stage

    def _deployment(self, request: SlotRequest, stream: BinaryIO) -> JobDeployment:
        if request.deployment_id in self._deployments:
            _send(stream, b"known")
        else:
            _send(stream, b"deployment?")
            stream.flush()
            self._deployments[request.deployment_id] = pickle.loads(_receive(stream))
        return self._deployments[request.deployment_id]

    def _is_wanted(self) -> bool:
        return os.path.isdir(self._run_folder) and _is_alive(self._daemon)

    def _watch(self) -> None:
        """End also in the middle of a user function that does not return."""
        while self._is_wanted():
            time.sleep(_WATCH_S)
        time.sleep(_GRACE_S)
        self._end()

    def _end(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        _leave(self._path)


def _leave(path: str) -> None:
    Path(path).unlink(missing_ok=True)
    os._exit(0)


def _not_loaded(error: Exception, slot: int) -> Row:
    failure = describe_failure(error, -1, f"the job could not be loaded in slot {slot}", slot, 0)
    return Row(FAILURE, slot, 0, 0, 0, pickle.dumps(failure))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _send(stream: BinaryIO, content: bytes) -> None:
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)


def _receive(stream: BinaryIO) -> bytes:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("the other side of the slot's connection ended")
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError("the other side of the slot's connection ended in the middle of a message")
    return content
