"""Hand-fused loops of the word counts from files to files: see python_loops. Files are read one after the other."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.files.lines import WINDOW_MS, Line, folder_of, read_and_remove
from benchmarks.job import Run, Setting


def text_lines(path: Path) -> Iterator[Line]:
    with open(path) as file:
        for line in file:
            time_ms, _, sentence = line.partition(" ")
            yield int(time_ms), sentence


def csv_lines(path: Path) -> Iterator[Line]:
    with open(path, newline="") as file:
        for time_ms, sentence in csv.reader(file):
            yield int(time_ms), sentence


def json_lines(path: Path) -> Iterator[Line]:
    with open(path) as file:
        for line in file:
            found = json.loads(line)
            yield found["time"], found["sentence"]


def parquet_lines(path: Path) -> Iterator[Line]:
    from pyarrow import parquet

    for batch in parquet.ParquetFile(path).iter_batches(2048):
        yield from zip(batch["time"].to_pylist(), batch["sentence"].to_pylist(), strict=True)


def run_of(kind: str, read: Callable[[Path], Iterator[Line]]) -> Run:
    def run(setting: Setting) -> tuple[Iterator[Any], None]:
        windows: dict[int, dict[str, int]] = {}
        for path in sorted(folder_of(kind, setting).iterdir()):
            for time_ms, sentence in read(path):
                start = time_ms - time_ms % WINDOW_MS
                counts = windows.get(start)
                if counts is None:
                    counts = windows[start] = {}
                for word in sentence.split():
                    counts[word] = counts.get(word, 0) + 1
        out = Path(tempfile.mkdtemp(prefix="benchmark-counts-"))
        with open(out / "counts", "w") as file:
            for counts in windows.values():
                for word, count in counts.items():
                    file.write(f"{word} {count}\n")
        return read_and_remove(out), None

    return run


RUNS: dict[str, Run] = {
    "files.text": run_of("text", text_lines),
    "files.csv": run_of("csv", csv_lines),
    "files.json": run_of("json", json_lines),
    "files.parquet": run_of("parquet", parquet_lines),
}
