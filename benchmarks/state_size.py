"""What keyed state costs as it grows, in memory and on disk: access, snapshots, memory, restore.

    python benchmarks/state_size.py
    python benchmarks/state_size.py --heap 100000,1000000 --disk 100000,1000000,10000000 --touched 10000

A value for each key is written, a base snapshot is taken, and then in each epoch some random keys are read and written
and what changed is saved, as a subtask does at a checkpoint. Every size runs in a process of its own. `memory` is what
the process itself needs at most; `mapped` includes pages of the file on disk, which the system takes back when it needs
them.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.state.backends import DiskBackend, HeapBackend, KeyedBackend
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.state_file import StateFileReader, StateFileWriter
from penstock.runtime.state.table import Extent

COLUMNS = {
    "backend": "backend",
    "keys": "keys",
    "writes_per_second": "first writes/s",
    "updates_per_second": "updates/s",
    "hot_updates_per_second": "updates/s (hot)",
    "base_seconds": "base s",
    "base_bytes": "base MB",
    "delta_milliseconds": "epoch's delta ms",
    "delta_bytes": "delta KB",
    "restore_seconds": "restore s",
    "memory_bytes": "memory MB",
    "mapped_bytes": "mapped MB",
}


@dataclass(frozen=True)
class Measurement:
    backend: str
    keys: int
    writes_per_second: float
    updates_per_second: float
    hot_updates_per_second: float
    base_seconds: float
    base_bytes: int
    delta_milliseconds: float
    delta_bytes: int
    restore_seconds: float
    memory_bytes: int
    mapped_bytes: int


class Subtask:
    """The value state of one operator in one subtask, and where its snapshots go."""

    def __init__(self, backend: KeyedBackend, folder: Path) -> None:
        self.state = KeyedStateBackend("benchmark", make_table=backend.tables("benchmark", "s0", "operator"))
        self.value = self.state.state(ValueStateDescriptor("value"))
        self._folder = folder

    def update(self, keys: Iterator[int]) -> None:
        state, value = self.state, self.value
        for key in keys:
            state.current_key = f"key-{key}"
            count, last = value.value() or (0, "")
            value.update((count + 1, last or f"the first value of {key}"))

    def save(self, name: str, extent: Extent) -> int:
        with open(self._folder / name, "wb") as out:
            writer = StateFileWriter(out)
            for table, contents in self.state.snapshot(extent):
                writer.add("operator", "keyed", table, encode_state(contents))
            writer.finish()
        self.state.snapshot_written(extent)
        return writer.size

    def restore(self, name: str, extent: Extent) -> None:
        path = self._folder / name
        with open(path, "rb") as content:
            for block, value in StateFileReader(name, content, path.stat().st_size).values("keyed"):
                self.state.restore(block.name, value, extent=extent)


def anonymous_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def measure(name: str, keys: int, touched: int, epochs: int, cache_entries: int) -> Measurement:
    backend: KeyedBackend = HeapBackend() if name == "heap" else DiskBackend(cache_entries=cache_entries)
    numbers = random.Random(7)
    memory = [anonymous_memory()]
    with tempfile.TemporaryDirectory() as folder:
        subtask = Subtask(backend, Path(folder))
        started = time.perf_counter()
        subtask.update(iter(range(keys)))
        written = time.perf_counter()
        base_bytes = subtask.save("base", Extent.ALL)
        based = time.perf_counter()
        memory.append(anonymous_memory())
        updating, saving, sizes = [], [], []
        for epoch in range(epochs):
            begun = time.perf_counter()
            subtask.update(numbers.randrange(keys) for _ in range(touched))
            updated = time.perf_counter()
            sizes.append(subtask.save(f"delta-{epoch}", Extent.CHANGES))
            updating.append(updated - begun)
            saving.append(time.perf_counter() - updated)
            memory.append(anonymous_memory())
        hot = [numbers.randrange(keys) for _ in range(1000)]
        begun = time.perf_counter()
        subtask.update(numbers.choice(hot) for _ in range(touched))
        hot_seconds = time.perf_counter() - begun
        subtask.state.dispose()
        del subtask
        begun = time.perf_counter()
        restored = Subtask(backend, Path(folder))
        restored.restore("base", Extent.ALL)
        for epoch in range(epochs):
            restored.restore(f"delta-{epoch}", Extent.CHANGES)
        restore_seconds = time.perf_counter() - begun
        assert len(restored.state) == keys
        restored.state.dispose()
    return Measurement(
        name,
        keys,
        keys / (written - started),
        touched / statistics.median(updating),
        touched / hot_seconds,
        based - written,
        base_bytes,
        1000 * statistics.median(saving),
        round(statistics.median(sizes)),
        restore_seconds,
        max(memory),
        1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    )


def measured(name: str, keys: int, parsed: argparse.Namespace) -> Measurement:
    """The same in a process of its own."""
    arguments = [name, str(keys), str(parsed.touched), str(parsed.epochs), str(parsed.cache_entries)]
    found = subprocess.run(
        [sys.executable, __file__, "--child", *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return Measurement(**json.loads(found.stdout))


def render(found: list[Measurement]) -> str:
    rows = [list(COLUMNS.values())] + [[_cell(name, getattr(each, name)) for name in COLUMNS] for each in found]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _cell(name: str, value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    if name == "delta_bytes":
        return f"{value / 1e3:,.0f}"
    if name.endswith("_bytes"):
        return f"{value / 1e6:,.0f}"
    return f"{value:,.1f}" if name.endswith("seconds") else f"{value:,.0f}"


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        name, *numbers = sys.argv[2:]
        keys, touched, epochs, cache_entries = map(int, numbers)
        print(json.dumps(asdict(measure(name, keys, touched, epochs, cache_entries))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heap", default="100000,1000000", help="numbers of keys in memory (%(default)s)")
    parser.add_argument("--disk", default="100000,1000000,10000000", help="numbers of keys on disk (%(default)s)")
    parser.add_argument("--touched", type=int, default=10_000, help="keys used in an epoch (%(default)s)")
    parser.add_argument("--epochs", type=int, default=7, help="(%(default)s)")
    parser.add_argument("--cache-entries", type=int, default=100_000, help="of the disk backend (%(default)s)")
    parsed = parser.parse_args()
    sizes = [(name, int(keys)) for name in ("heap", "disk") for keys in getattr(parsed, name).split(",") if keys]
    print(render([measured(name, keys, parsed) for name, keys in sizes]))


if __name__ == "__main__":
    main()
