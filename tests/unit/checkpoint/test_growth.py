"""What a job keeps on disk does not grow with the number of its checkpoints, and each that is kept can be restored."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.common import Types
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import JobInEpochs, MemoryFolder

KEYS = range(60)
Model = dict[int, int]


class SumOrForget(KeyedProcessFunction):
    """Emits (key, sum so far); a record without a number clears the sum, and 0 asks for it."""

    def open(self, runtime_context):
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        if value[1] is None:
            self._sum.clear()
        elif value[1]:
            self._sum.update((self._sum.value() or 0) + value[1])
        yield ctx.get_current_key(), self._sum.value() or 0


def sums(stream: Any) -> Any:
    return stream.key_by(lambda record: record[0]).process(SumOrForget())


def stateless(stream: Any) -> Any:
    return stream.map(lambda record: (record[0], 0))


def apply(model: Model, records: list[tuple[int, int | None]]) -> Model:
    after = dict(model)
    for key, number in records:
        after[key] = 0 if number is None else after.get(key, 0) + number
    return after


def restored_sums(found: FoundCheckpoint) -> Model:
    job = JobInEpochs(sums, 2, restored=found)
    shown = job.epoch([(key, 0) for key in KEYS])
    job.close()
    return {key: total for key, total in map(eval, shown) if total}


def state_files(folder: MemoryFolder) -> int:
    return sum("/shared/" in path for path in folder.files)


def most_files(parallelism: int, retained: int) -> int:
    """A base, gathered changes and 20 deltas of a keyed subtask, one file of another; and what older ones need."""
    return parallelism * (1 + 22) + parallelism * 2 * retained


def run(
    build: Callable[[Any], Any],
    epochs: int,
    records_of: Callable[[int], list[tuple[int, int | None]]],
    parallelism: int = 2,
    retained: int = 1,
) -> tuple[list[int], list[int], deque[tuple[FoundCheckpoint, Model]]]:
    """Run a job: files and bytes of metadata after each checkpoint, and those that are kept with what they hold."""
    folder = MemoryFolder()
    job = JobInEpochs(build, parallelism, folder=folder, retained=retained)
    files, metadata, model = [], [], Model()
    kept: deque[tuple[FoundCheckpoint, Model]] = deque(maxlen=retained)
    for number in range(epochs):
        records = records_of(number)
        job.epoch(records)
        model = apply(model, records)
        kept.append((job.checkpoint, model))
        files.append(state_files(folder))
        metadata.append(len(job.checkpoint.metadata.encode()))
    job.close()
    return files, metadata, kept


def test_files_and_metadata_stay_as_they_are_over_a_thousand_checkpoints():
    chance = random.Random(7)

    def some_records(epoch: int) -> list[tuple[int, int | None]]:
        return [(chance.choice(KEYS), chance.choice([None, 1, 2, 3])) for _ in range(5)]

    files, metadata, kept = run(sums, 1000, some_records, parallelism=1, retained=3)
    assert max(files) <= most_files(1, retained=3)
    assert max(metadata[500:]) <= 1.1 * max(metadata[:100])
    for found, model in kept:
        assert restored_sums(found) == {key: total for key, total in model.items() if total}


def test_tasks_without_keyed_state_keep_one_file_each():
    files, _, _ = run(stateless, 50, lambda number: [(number, 1)])
    assert len(set(files[1:])) == 1 and files[-1] <= 4


def test_quiet_keyed_task_adds_no_files():
    files, _, kept = run(sums, 50, lambda number: [(number, 1)] if number < 3 else [])
    assert files[-1] == files[10]
    assert restored_sums(kept[-1][0]) == {0: 1, 1: 1, 2: 1}


records = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from([None, 1, 2])), max_size=6)


@settings(max_examples=15, deadline=None)
@given(
    epochs=st.lists(st.tuples(records, st.sampled_from(["checkpoint", "no checkpoint", "fail"])), max_size=90),
    retained=st.integers(1, 3),
)
def test_every_checkpoint_that_is_kept_gives_back_its_state_whatever_fails_in_between(epochs, retained):
    folder = MemoryFolder()
    job = JobInEpochs(sums, 2, folder=folder, retained=retained)
    model = complete = Model()
    kept: deque[tuple[FoundCheckpoint, Model]] = deque(maxlen=retained)
    for added, what in epochs:
        job.epoch(added, is_checkpoint=what == "checkpoint")
        model = apply(model, added)
        if what == "checkpoint":
            complete = model
            kept.append((job.checkpoint, model))
        elif what == "fail":
            if not kept:
                return  # There is nothing to go back to.
            job.fail()
            model = complete
    job.close()
    assert state_files(folder) <= most_files(2, retained)
    for found, expected in kept:
        assert restored_sums(found) == {key: total for key, total in expected.items() if total}
