"""A job on its way from the client whose program defined it to the job manager that runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.job_id import JobID
from penstock.common.redaction import redacted_repr
from penstock.datastream.dependencies import CachedFile, JobDependencies
from penstock.jobmaster.dependencies.blob_store import ShippedFile

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class ShippedCachedFile:
    """A file of `register_cached_file`: shipped, or an address that the job manager reads itself."""

    file: ShippedFile | None
    address: str | None
    is_executable: bool

    __repr__ = redacted_repr


@dataclass(frozen=True)
class ShippedDependencies:
    """What a job brings along, with uploaded files instead of the client's paths."""

    python_files: tuple[ShippedFile, ...] = ()
    archives: tuple[tuple[ShippedFile, str], ...] = ()
    requirements: tuple[ShippedFile, ShippedFile | None] | None = None
    jars: tuple[str, ...] = ()
    cached_files: dict[str, ShippedCachedFile] = field(default_factory=dict)

    def files(self) -> Iterable[ShippedFile]:
        yield from self.python_files
        yield from (archive for archive, _ in self.archives)
        yield from (file for file in self.requirements or () if file is not None)
        yield from (each.file for each in self.cached_files.values() if each.file is not None)

    def at(self, path_of: Callable[[ShippedFile], str]) -> JobDependencies:
        """The dependencies as paths of the machine that has the files."""
        python_files = {path_of(file): file.origin for file in self.python_files}
        requirements = None
        if self.requirements is not None:
            packages = self.requirements[1]
            requirements = (path_of(self.requirements[0]), None if packages is None else path_of(packages))
        return JobDependencies(
            list(python_files),
            [(path_of(archive), folder) for archive, folder in self.archives],
            requirements,
            list(self.jars),
            {
                name: CachedFile(path_of(each.file) if each.file is not None else str(each.address), each.is_executable)
                for name, each in self.cached_files.items()
            },
            {path: origin for path, origin in python_files.items() if origin is not None},
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "python-files": [file.to_json() for file in self.python_files],
            "archives": [{"file": archive.to_json(), "folder": folder} for archive, folder in self.archives],
            "requirements": [None if file is None else file.to_json() for file in self.requirements or ()],
            "jars": list(self.jars),
            "cached-files": {
                name: {
                    "file": None if each.file is None else each.file.to_json(),
                    "address": each.address,
                    "is-executable": each.is_executable,
                }
                for name, each in self.cached_files.items()
            },
        }

    @staticmethod
    def of_json(document: dict[str, Any]) -> ShippedDependencies:
        required = [_optional(file) for file in document["requirements"]]
        return ShippedDependencies(
            tuple(ShippedFile.of_json(file) for file in document["python-files"]),
            tuple((ShippedFile.of_json(each["file"]), str(each["folder"])) for each in document["archives"]),
            (required[0], required[1]) if required and required[0] is not None else None,
            tuple(map(str, document["jars"])),
            {
                name: ShippedCachedFile(_optional(each["file"]), each["address"], bool(each["is-executable"]))
                for name, each in document["cached-files"].items()
            },
        )


def _optional(document: Any) -> ShippedFile | None:
    return None if document is None else ShippedFile.of_json(document)


@dataclass(frozen=True)
class JobSubmission:
    """Everything about a job but its files, which are uploaded before."""

    graph: str
    """The hash of the pickled JobGraph."""
    configuration: dict[str, str]
    dependencies: ShippedDependencies
    is_attached: bool
    """True if the client waits for the job and shows what it prints."""
    ends_with_client: bool
    """True if the job is cancelled when its client goes away."""
    python: str = PYTHON
    job_id: str | None = None
    """Chosen by the client, so that a submission whose answer was lost can be repeated; None: by the job manager."""
    submitter: str | None = field(default=None, repr=False)
    """What the client shows when it reads the job's output, as nobody else can; None: there is no such client."""

    __repr__ = redacted_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "graph": self.graph,
            "configuration": self.configuration,
            "dependencies": self.dependencies.to_json(),
            "attached": self.is_attached,
            "ends-with-client": self.ends_with_client,
            "python": self.python,
            "job-id": self.job_id,
            "submitter": self.submitter,
        }

    @staticmethod
    def of_json(document: dict[str, Any]) -> JobSubmission:
        """Raises InvalidProgramError for what no client of Penstock's sends."""
        try:
            return JobSubmission(
                str(document["graph"]),
                {str(key): str(value) for key, value in document["configuration"].items()},
                ShippedDependencies.of_json(document["dependencies"]),
                bool(document["attached"]),
                bool(document["ends-with-client"]),
                str(document["python"]),
                None if document.get("job-id") is None else str(JobID(document["job-id"])),
                None if document.get("submitter") is None else str(document["submitter"]),
            )
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise InvalidProgramError(
                f"this is no submission of a job ({type(error).__name__}: {error}); submit jobs with `penstock run -m`"
            ) from error

    def blobs(self) -> set[str]:
        return {self.graph, *(file.blob for file in self.dependencies.files())}
