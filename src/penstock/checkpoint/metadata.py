"""`_metadata`: the file that makes a checkpoint or savepoint whole. It is JSON, with pickled parts as base64.

What is not listed there does not count. It is written last, and it carries a checksum, so half of it is never taken for
a checkpoint. Files are named relative to the folder of the job (checkpoints) or of the savepoint, which may be moved.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from penstock.common.exceptions import CheckpointError, CorruptStateError
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.table import Extent

METADATA = "_metadata"
FORMAT_VERSION = 1

CANONICAL = "canonical"
"""State as Parquet: readable by Spark, and independent of how a backend holds it."""
NATIVE = "native"
"""State files as the subtasks wrote them: quicker to write."""


@dataclass(frozen=True)
class OperatorEntry:
    """An operator of the job that wrote the checkpoint."""

    operator_id: str
    name: str
    uid: str | None = None

    def __str__(self) -> str:
        return f"'{self.name}' ({f'uid {self.uid!r}' if self.uid is not None else 'no uid'})"


@dataclass(frozen=True)
class VertexEntry:
    """A chain of operators, and the state files of each of its subtasks."""

    operators: tuple[OperatorEntry, ...]
    parallelism: int
    max_parallelism: int
    subtasks: tuple[tuple[StateHandle, ...], ...]

    @property
    def names(self) -> dict[str, str]:
        return {operator.operator_id: operator.name for operator in self.operators}

    @property
    def has_fixed_keys(self) -> bool:
        """False if a key may belong to another subtask, although parallelism is the same: see `StateHandle`."""
        return all(each.has_fixed_keys or not each.has_keyed_state for handles in self.subtasks for each in handles)

    def states_of(self, operator_id: str) -> dict[str, set[str]]:
        """Kind -> names of the states that were saved for an operator."""
        found: dict[str, set[str]] = {}
        for handles in self.subtasks:
            for handle in handles:
                for operator, kind, name in handle.states:
                    if operator == operator_id and kind != "memory":
                        found.setdefault(kind, set()).add(name)
        return found


@dataclass(frozen=True)
class CheckpointMetadata:
    """Everything that a job needs to continue from a checkpoint."""

    job_id: str
    job_name: str
    checkpoint_id: int
    timestamp_ms: int
    topology: str
    """A fingerprint of the job graph: only the same job continues exactly as it was."""
    vertices: tuple[VertexEntry, ...]
    positions: dict[str, bytes] = field(default_factory=dict)
    """Pickled source positions, by operator id."""
    committables: dict[str, bytes] = field(default_factory=dict)
    """What is committed with this checkpoint, pickled, by operator id."""
    savepoint_format: str | None = None
    """CANONICAL, NATIVE, or None for a checkpoint."""

    @property
    def is_savepoint(self) -> bool:
        return self.savepoint_format is not None

    def handles(self) -> list[StateHandle]:
        return [handle for vertex in self.vertices for handles in vertex.subtasks for handle in handles]

    def size(self) -> int:
        return sum(handle.size for handle in self.handles())

    def encode(self) -> bytes:
        body = json.dumps(_to_json(self), indent=1).encode()
        header = json.dumps({"format": FORMAT_VERSION, "checksum": zlib.crc32(body)}).encode()
        return header + b"\n" + body


def decode_metadata(content: bytes, path: str) -> CheckpointMetadata:
    """`path` names the file in errors."""
    first, _, body = content.partition(b"\n")
    try:
        header = json.loads(first)
        version, checksum = int(header["format"]), header["checksum"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStateError(f"{path} is not the metadata of a checkpoint, or is damaged ({error})") from error
    if version > FORMAT_VERSION:
        # This is no damage: from an older checkpoint, the job would repeat what it has done since.
        raise CheckpointError(
            f"{path} has format {version}, and this version of Penstock reads up to {FORMAT_VERSION}; use the version "
            f"that wrote it, or a newer one"
        )
    if zlib.crc32(body) != checksum:
        raise CorruptStateError(f"{path} is damaged or cut off: its checksum does not match")
    try:
        return _from_json(json.loads(body))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStateError(
            f"{path} is not the metadata of a checkpoint ({type(error).__name__}: {error})"
        ) from error


def _to_json(metadata: CheckpointMetadata) -> dict[str, Any]:
    return {
        "job-id": metadata.job_id,
        "job-name": metadata.job_name,
        "checkpoint-id": metadata.checkpoint_id,
        "timestamp": metadata.timestamp_ms,
        "topology": metadata.topology,
        "savepoint-format": metadata.savepoint_format,
        "vertices": [
            {
                "operators": [{"id": o.operator_id, "name": o.name, "uid": o.uid} for o in vertex.operators],
                "parallelism": vertex.parallelism,
                "max-parallelism": vertex.max_parallelism,
                "subtasks": [[_handle_to_json(handle) for handle in handles] for handles in vertex.subtasks],
            }
            for vertex in metadata.vertices
        ],
        "positions": _to_text(metadata.positions),
        "committables": _to_text(metadata.committables),
    }


def _from_json(found: dict[str, Any]) -> CheckpointMetadata:
    return CheckpointMetadata(
        job_id=found["job-id"],
        job_name=found["job-name"],
        checkpoint_id=found["checkpoint-id"],
        timestamp_ms=found["timestamp"],
        topology=found["topology"],
        savepoint_format=found["savepoint-format"],
        vertices=tuple(
            VertexEntry(
                tuple(OperatorEntry(o["id"], o["name"], o["uid"]) for o in vertex["operators"]),
                vertex["parallelism"],
                vertex["max-parallelism"],
                tuple(tuple(_handle_from_json(handle) for handle in handles) for handles in vertex["subtasks"]),
            )
            for vertex in found["vertices"]
        ),
        positions=_from_text(found["positions"]),
        committables=_from_text(found["committables"]),
    )


def _handle_to_json(handle: StateHandle) -> dict[str, Any]:
    return {
        "file": handle.name,
        "epoch": handle.epoch,
        "size": handle.size,
        "extent": handle.extent.value,
        "states": sorted(map(list, handle.states)),
        "fixed-keys": handle.has_fixed_keys,
    }


def _handle_from_json(found: dict[str, Any]) -> StateHandle:
    name = found["file"]
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"the state file {name!r} lies outside of the checkpoint")
    states = frozenset((operator, kind, name) for operator, kind, name in found["states"])
    is_fixed = found.get("fixed-keys", False)  # Earlier versions do not say.
    return StateHandle(name, found["epoch"], found["size"], Extent(found["extent"]), states, is_fixed)


def _to_text(pickled: dict[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode("ascii") for name, content in pickled.items()}


def _from_text(pickled: dict[str, str]) -> dict[str, bytes]:
    return {name: base64.b64decode(content) for name, content in pickled.items()}
