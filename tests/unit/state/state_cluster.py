"""The keyed state of an operator with several subtasks, its snapshots, and what users do with it."""

from __future__ import annotations

from typing import Any

from state_model import TTL_MS, Model

from penstock.common import Time
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.runtime.key_groups import KeyOwners
from penstock.runtime.state.backends import DiskBackend, HeapBackend, KeyedBackend
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import Extent

BACKENDS: dict[str, KeyedBackend] = {
    "heap": HeapBackend(),
    "disk, one entry in memory": DiskBackend(cache_entries=1),
    "disk, few entries in memory": DiskBackend(cache_entries=6),
    "disk, all entries in memory": DiskBackend(),
}
MAX_PARALLELISM = 16

Chain = list[tuple[Extent, list[tuple[str, bytes]]]]
"""The snapshots that one subtask is restored from."""


class Summing(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value  # In place, as users do.
        return accumulator

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0]]


def descriptors(ttl: str | None) -> dict[str, Any]:
    made = {
        "value": ValueStateDescriptor("value"),
        "list": ListStateDescriptor("list"),
        "map": MapStateDescriptor("map"),
        "reducing": ReducingStateDescriptor("reducing", lambda a, b: a + b),
        "aggregating": AggregatingStateDescriptor("aggregating", Summing()),
    }
    if ttl is not None:
        builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
        config = (builder.update_ttl_on_read_and_write() if ttl == "read" else builder).build()
        for each in made.values():
            each.enable_time_to_live(config)
    return made


class Cluster:
    """The subtasks of one operator, with a model of what they hold."""

    def __init__(self, ttl: str | None, backend: KeyedBackend) -> None:
        self.model = Model(ttl)
        self._descriptors = descriptors(ttl)
        self._chains: list[Chain] = []
        self._saved_model = self.model.copied_states()
        self._subtasks: list[KeyedStateBackend] = []
        self._start(1, backend)

    def _start(self, parallelism: int, backend: KeyedBackend) -> None:
        self.close()
        self._owners = KeyOwners(MAX_PARALLELISM, parallelism)
        self._subtasks = [
            KeyedStateBackend("op", lambda: self.model.now, backend.tables("run", f"s{number}", "op"))
            for number in range(parallelism)
        ]

    def close(self) -> None:
        for subtask in self._subtasks:
            subtask.dispose()

    # --- snapshots -------------------------------------------------------------------------------------------------

    def snapshot(self, extent: Extent) -> None:
        if len(self._chains) != len(self._subtasks):
            self._chains = [[] for _ in self._subtasks]
        for subtask, chain in zip(self._subtasks, self._chains, strict=True):
            taken = extent if chain else Extent.ALL
            blocks = [(name, encode_state(contents)) for name, contents in subtask.snapshot(taken)]
            subtask.snapshot_written(taken)
            chain[:] = [*self._that_still_count(chain, taken), (taken, blocks)]
        self._saved_model = self.model.copied_states()

    def _that_still_count(self, chain: Chain, extent: Extent) -> Chain:
        return {Extent.ALL: [], Extent.SINCE_BASE: chain[:1], Extent.CHANGES: chain}[extent]

    def restore(self, parallelism: int, backend: KeyedBackend) -> None:
        """Go back to the last snapshot, at another parallelism perhaps."""
        is_exact = parallelism == len(self._chains)
        self._start(parallelism, backend)
        for number, subtask in enumerate(self._subtasks):
            owns_key = None if is_exact else lambda key, number=number: self._owners[key] == number
            for chain in self._chains[number : number + 1] if is_exact else self._chains:
                for extent, blocks in chain:
                    for name, content in blocks:
                        subtask.restore(name, decode_state(content), owns_key, extent)
        self.model.states = self._saved_model
        self._saved_model = self.model.copied_states()
        if not is_exact:
            self._chains = []
            self.snapshot(Extent.ALL)

    # --- what users do ---------------------------------------------------------------------------------------------

    def state(self, place: Any) -> Any:
        kind, namespace, key = place
        subtask = self._subtasks[self._owners[key]]
        subtask.current_key = key
        return subtask.state(self._descriptors[kind], namespace)

    def merge(self, source: Any, target: Any) -> None:
        kind, namespace, key = target
        subtask = self._subtasks[self._owners[key]]
        subtask.current_key = key
        subtask.merge_namespaces(self._descriptors[kind], namespace, [source[1]])

    def __len__(self) -> int:
        return sum(map(len, self._subtasks))
