"""Slot sharing groups: which operators may share a slot, and what resources such a slot needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import total_ordering

__all__ = ["MemorySize", "SlotSharingGroup"]

_UNITS = {"gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10}


@total_ordering
class MemorySize:
    """An amount of memory, which can be compared and printed.

    >>> str(MemorySize.of_mebi_bytes(3)), MemorySize(1024) < MemorySize.of_mebi_bytes(1)
    ('3 mb', True)
    """

    __slots__ = ("_bytes",)

    def __init__(self, bytes_size: int = 0) -> None:
        if bytes_size < 0:
            raise ValueError(f"MemorySize: bytes_size must not be negative, got {bytes_size}")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """A size of whole mebibytes, of 1024 * 1024 bytes each."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """The size in bytes."""
        return self._bytes

    def get_kibi_bytes(self) -> int:
        """The size in kibibytes, rounded down."""
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        """The size in mebibytes, rounded down."""
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        """The size in gibibytes, rounded down."""
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        """The size in tebibytes, rounded down."""
        return self._bytes >> 40

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and self._bytes == other._bytes

    def __lt__(self, other: object) -> bool:
        return self._bytes < other._bytes if isinstance(other, MemorySize) else NotImplemented

    def __hash__(self) -> int:
        return hash((MemorySize, self._bytes))

    def __str__(self) -> str:
        for unit, size in _UNITS.items():
            if self._bytes and self._bytes % size == 0:
                return f"{self._bytes // size} {unit}"
        return f"{self._bytes} bytes"

    def __repr__(self) -> str:
        return f"MemorySize({self})"


class SlotSharingGroupBuilder:
    """Collects a group's resources. Either none are given, or at least CPU cores and task heap memory."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._cpu_cores: float | None = None
        self._task_heap_memory: MemorySize | None = None
        self._task_off_heap_memory: MemorySize | None = None
        self._managed_memory: MemorySize | None = None
        self._external_resources: dict[str, float] = {}

    def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroupBuilder:
        """The CPU cores of a slot."""
        self._check(cpu_cores > 0, f"cpu_cores must be positive, got {cpu_cores}")
        self._cpu_cores = float(cpu_cores)
        return self

    def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroupBuilder:
        """The memory of a slot for functions."""
        self._check(task_heap_memory.get_bytes() > 0, f"task_heap_memory must be positive, got {task_heap_memory}")
        self._task_heap_memory = task_heap_memory
        return self

    def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroupBuilder:
        """The same, in mebibytes."""
        return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

    def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroupBuilder:
        """The memory of a slot for functions outside of Java's heap; none, unless set."""
        self._task_off_heap_memory = task_off_heap_memory
        return self

    def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroupBuilder:
        """The same, in mebibytes."""
        return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

    def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroupBuilder:
        """The memory of a slot for state and sorting; none, unless set."""
        self._managed_memory = managed_memory
        return self

    def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroupBuilder:
        """The same, in mebibytes."""
        return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

    def set_external_resource(self, name: str, value: float) -> SlotSharingGroupBuilder:
        """An amount of another resource, such as GPUs."""
        self._check(value >= 0, f"external resource {name!r} must not be negative, got {value}")
        self._external_resources[name] = float(value)
        return self

    def build(self) -> SlotSharingGroup:
        """The group; ValueError if only some of the needed resources are set."""
        memory = (self._task_heap_memory, self._task_off_heap_memory, self._managed_memory)
        if self._cpu_cores is None and memory == (None, None, None) and not self._external_resources:
            return SlotSharingGroup(self._name)
        self._check(
            self._cpu_cores is not None and self._task_heap_memory is not None,
            "a group with resources needs both CPU cores and task heap memory; call set_cpu_cores(...) and "
            "set_task_heap_memory_mb(...), or set no resource at all",
        )
        return SlotSharingGroup(
            self._name,
            self._cpu_cores,
            self._task_heap_memory,
            self._task_off_heap_memory or MemorySize(),
            self._managed_memory or MemorySize(),
            self._external_resources,
        )

    def _check(self, ok: bool, message: str) -> None:
        if not ok:
            raise ValueError(f"slot sharing group {self._name!r}: {message}")


@dataclass(frozen=True)
class SlotSharingGroup:
    """Names operators that may share a slot, with the resources the slot needs; None for those that were not given."""

    Builder = SlotSharingGroupBuilder

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("SlotSharingGroup: name must not be empty")
        object.__setattr__(self, "external_resources", dict(self.external_resources))

    @staticmethod
    def builder(name: str) -> SlotSharingGroupBuilder:
        """Start a group with resources.

        >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2).set_task_heap_memory_mb(512).build()
        >>> group.get_cpu_cores(), str(group.get_task_heap_memory())
        (2.0, '512 mb')
        """
        return SlotSharingGroupBuilder(name)

    def get_name(self) -> str:
        """The name of the group."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """CPU cores of a slot; None if no resources were given."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """Memory for functions; None if no resources were given."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Memory for functions outside of Java's heap; None if no resources were given."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """Memory for state and sorting; None if no resources were given."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Other resources by name, such as GPUs; empty unless given."""
        return dict(self.external_resources)
