"""What the word counts from files have in common: their input, what follows the reading, and their output.

A line has a time and ten words; one comes every millisecond. There are as many files as subtasks, and lines are dealt
to them in turn, so that event time goes on in all of them side by side.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    Encoder,
    FileSink,
    StreamExecutionEnvironment,
    Time,
    TumblingEventTimeWindows,
    Types,
)
from benchmarks.job import Setting, environment_of, measure_runs, parse_setting, report, sizes_of, watched
from benchmarks.peers import installation
from benchmarks.word_count import TEXT_WORDS, word_of

WORDS_A_LINE = 10
WINDOW_MS = 10_000

Line = tuple[int, str]
"""Time in milliseconds, and words with spaces between them."""
Write = Callable[[Path, Iterator[Line]], None]
Words = Callable[[StreamExecutionEnvironment, str], DataStream]
"""The words of the files of a folder, each with a one, with their event times."""


def lines(setting: Setting, first: int = 0, step: int = 1) -> Iterator[Line]:
    """Every `step`th line from the first on; there are as many words as the setting has records, in whole lines."""
    word = word_of(setting.keys, setting.has_skew)
    text = [word(place)[0] for place in range(TEXT_WORDS)]
    text += text[:WORDS_A_LINE]
    for number in range(first, setting.records // WORDS_A_LINE, step):
        place = number * WORDS_A_LINE % TEXT_WORDS
        yield number, " ".join(text[place : place + WORDS_A_LINE])


def folder_of(kind: str, setting: Setting) -> Path:
    """Where an input lies; peers make up the same name."""
    skew = "skewed" if setting.has_skew else "even"
    name = f"{kind}-{setting.records}-p{setting.parallelism}-{setting.keys}-{skew}"
    return installation.bench_folder() / "inputs" / name


class FileWordCount:
    """A word count of files of one kind."""

    def __init__(self, kind: str, words: Words, write: Write) -> None:
        self._kind = kind
        self._words = words
        self._write = write

    def prepare(self, setting: Setting) -> None:
        """Write the input, unless it is there."""
        folder = folder_of(self._kind, setting)
        if folder.exists():
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Under another name until it is complete.
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix="unfinished-"))
        for part in range(setting.parallelism):
            self._write(unfinished / f"part-{part}.{self._kind}", lines(setting, part, setting.parallelism))
        unfinished.rename(folder)

    def run(self, setting: Setting) -> tuple[Iterator[Any], int | None]:
        """From the files of an input to files of counts, which are read and removed when the results are iterated."""
        out = Path(tempfile.mkdtemp(prefix="benchmark-counts-"))

        def job() -> None:
            env = environment_of(setting)
            sink = FileSink.for_row_format(out.as_uri(), Encoder.simple_string_encoder()).build()
            counts(self._words(env, folder_of(self._kind, setting).as_uri())).map(as_text, Types.STRING()).sink_to(sink)
            env.execute(f"word count of {self._kind}")

        _, shuffled_bytes = watched(job)
        return read_and_remove(out), shuffled_bytes

    def run_as_script(self) -> None:
        """Measure with the arguments of the command line and print the measurements as JSON."""
        setting = parse_setting()
        for records in sizes_of(setting):
            self.prepare(replace(setting, records=records))
        report(measure_runs(self.run, setting))


def pair_type() -> Any:
    return Types.TUPLE([Types.STRING(), Types.LONG()])


def counts(words: DataStream) -> DataStream:
    return (
        words.key_by(lambda pair: pair[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def as_text(pair: tuple[str, int]) -> str:
    return f"{pair[0]} {pair[1]}"


def read_and_remove(folder: Path) -> Iterator[Any]:
    """The counts that were written."""
    for file in folder.rglob("*"):
        if file.is_file():
            for line in file.read_text().splitlines():
                word, count = line.split()
                yield word, int(count)
    shutil.rmtree(folder)


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    windows: dict[int, Counter[str]] = {}
    for time_ms, sentence in lines(setting):
        windows.setdefault(time_ms // WINDOW_MS, Counter()).update(sentence.split())
    return [found for window in windows.values() for found in window.items()]
