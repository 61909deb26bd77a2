"""Programs that were uploaded to a job manager, and what it takes to have one define its job.

A program runs in a process of its own, as far as its first execute(); the job that it has defined there is passed on
as a file and runs in the job manager.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from penstock.common import config_keys as keys
from penstock.common.exceptions import InvalidProgramError, PenstockError
from penstock.common.redaction import redacted_text
from penstock.jobmaster.dependencies.blob_store import BlobStore
from penstock.jobmaster.job_submission import JobSubmission

_log = logging.getLogger(__name__)

SUBMISSION = "submission.json"
PLAN = "plan.json"
_DEFINES_WITHIN_S = 300
_MOST_PROGRAMS = 100
_PIECE = 1 << 20
_LAST_CHARACTERS = 4_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.(py|zip|pyz)")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_RUNNER = "penstock.cli.uploaded_program"


class ProgramError(PenstockError):
    """A program is missing, or a file is not a program. `status` is HTTP's."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class UploadedProgram:
    id: str
    """As in Flink: a UUID, and the name that the file had."""
    path: Path
    uploaded_ms: int
    modules: tuple[str, ...]
    """What can be run of it: of an archive its main program, if it has one."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_archive(self) -> bool:
        return self.path.suffix != ".py"


@dataclass(frozen=True)
class ProgramRun:
    """How to run a program."""

    module: str | None = None
    """Of an archive: the module to run instead of its main program."""
    arguments: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)


class UploadedPrograms:
    """Each has a folder of its own. `max_total` bytes is the most that all have together."""

    def __init__(self, folder: Path, max_total: int) -> None:
        folder.mkdir(mode=0o700)
        self._folder = folder
        self._max_total = max_total
        self._lock = threading.Lock()
        self._programs: dict[str, UploadedProgram] = {}

    def all(self) -> list[UploadedProgram]:
        """The newest first, as Flink lists them."""
        with self._lock:
            return list(self._programs.values())[::-1]

    def find(self, program_id: str) -> UploadedProgram:
        with self._lock:
            # Only ids that were given out lead to a file: no path can be made up.
            found = self._programs.get(program_id)
        if found is None:
            raise ProgramError("There is no such program; GET /jars lists those that were uploaded", 404)
        return found

    def add(self, file_name: str, content: BinaryIO) -> UploadedProgram:
        name = Path(file_name.replace("\\", "/")).name
        if not _NAME.fullmatch(name):
            raise ProgramError(
                "the file must be a Python program (.py) or an archive of one (.zip, .pyz), with a name of letters, "
                "digits, _, - and ."
            )
        program_id = f"{uuid4()}_{name}"
        path = self._folder / program_id / name
        with self._lock:
            if len(self._programs) >= _MOST_PROGRAMS:
                raise ProgramError(f"{_MOST_PROGRAMS} programs were uploaded, which is the most; delete one", 409)
            path.parent.mkdir(mode=0o700)
            try:
                self._write(path, content)
                program = UploadedProgram(program_id, path, int(time.time() * 1000), _modules_in(path))
            except BaseException:
                _remove(path)
                raise
            self._programs[program_id] = program
        return program

    def _write(self, path: Path, content: BinaryIO) -> None:
        left = self._max_total - sum(each.path.stat().st_size for each in self._programs.values())
        with path.open("wb") as out:
            while piece := content.read(_PIECE):
                left -= len(piece)
                if left < 0:
                    raise ProgramError(
                        f"all programs together would have more than {self._max_total} bytes; delete one, or start the "
                        f"job manager with a larger {keys.BLOB_MAX_TOTAL.key}",
                        413,
                    )
                out.write(piece)

    def delete(self, program_id: str) -> None:
        program = self.find(program_id)
        with self._lock:
            self._programs.pop(program_id, None)
        _remove(program.path)

    def define_job(self, program: UploadedProgram, run: ProgramRun, blobs: BlobStore) -> JobSubmission:
        """Run the program until it executes a job; its files are in `blobs` then."""
        with tempfile.TemporaryDirectory(prefix="run-", dir=self._folder) as folder:
            _run(program, run, Path(folder))
            submission = JobSubmission.of_json(json.loads((Path(folder) / SUBMISSION).read_text()))
            for blob in submission.blobs():
                with blobs.upload(blob) as upload, (Path(folder) / blob).open("rb") as content:
                    while piece := content.read(_PIECE):
                        upload.write(piece)
                    upload.finish()
        return submission

    def plan(self, program: UploadedProgram, run: ProgramRun) -> dict[str, Any]:
        """Run the program until it executes a job, which is only looked at."""
        with tempfile.TemporaryDirectory(prefix="run-", dir=self._folder) as folder:
            _run(program, run, Path(folder))
            plan: dict[str, Any] = json.loads((Path(folder) / PLAN).read_text())
        return plan


def _modules_in(path: Path) -> tuple[str, ...]:
    if path.suffix == ".py":
        return (path.stem,)
    try:
        with zipfile.ZipFile(path) as archive:
            return ("__main__",) if "__main__.py" in archive.namelist() else ()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:  # The last for names that are no text.
        raise ProgramError(f"{path.name} is not a zip file, or a damaged one: {error}") from error


def _remove(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)  # Python may have put what it compiled beside it.


def _run(program: UploadedProgram, run: ProgramRun, folder: Path) -> None:
    target = _target(program, run)
    settings = {**run.settings}
    if target["files"]:  # The functions of the job need its modules as well.
        given = settings.get(keys.PYTHON_FILES.key)
        settings[keys.PYTHON_FILES.key] = ",".join([*target["files"], *([given] if given else [])])
    order = json.dumps({**target, "arguments": run.arguments, "settings": settings})
    try:
        ended = subprocess.run(
            [sys.executable, "-m", _RUNNER, str(folder)],
            input=order,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=folder,
            timeout=_DEFINES_WITHIN_S,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidProgramError(
            f"{program.name} did not call execute() within {_DEFINES_WITHIN_S} s; it was ended"
        ) from error
    said = redacted_text(ended.stdout[-_LAST_CHARACTERS:]).strip()
    if ended.returncode != 0 or not (folder / SUBMISSION).exists():
        what = "ended without running a job" if ended.returncode == 0 else "failed before it ran a job"
        raise InvalidProgramError(f"{program.name} {what}; call env.execute() at its end. It said:\n{said}")
    if said:
        _log.info("%s said, before its job was taken:\n%s", program.name, said)


def _target(program: UploadedProgram, run: ProgramRun) -> dict[str, Any]:
    if not program.is_archive:
        if run.module not in (None, program.path.stem):
            raise ProgramError(f"entryClass: {program.name} is one program, and has no module to choose")
        return {"target": str(program.path), "is-module": False, "files": []}
    if run.module in (None, "__main__"):
        if not program.modules:
            raise ProgramError(f"{program.name} has no __main__.py: name the module to run as entryClass")
        return {"target": str(program.path), "is-module": False, "files": [str(program.path)]}
    if run.module is None or not _MODULE.fullmatch(run.module):
        raise ProgramError("entryClass must be the name of a module, such as jobs.orders")
    return {"target": run.module, "is-module": True, "files": [str(program.path)]}
