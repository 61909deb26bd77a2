from __future__ import annotations

import errno
import itertools
import resource
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.jobmaster.sources import element_spool
from penstock.jobmaster.sources.element_spool import ElementSpool
from penstock.jobmaster.sources.spool import Spool
from penstock.runtime.chunk import read_chunk

records = st.lists(st.binary(max_size=6), max_size=7)
step = st.one_of(
    st.tuples(st.just("append"), records),
    st.tuples(st.just("read"), st.integers(0, 40), st.integers(0, 12)),
    st.tuples(st.just("forget"), st.integers(0, 40)),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("crash"), st.binary(min_size=1, max_size=3)),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@given(st.lists(step, max_size=40), st.integers(1, 5))
def test_spool_does_what_a_list_does(steps, segment_records):
    with TemporaryDirectory() as name:
        folder = Path(name)
        spool = Spool(folder, segment_records)
        written: list[bytes] = []
        forgotten = 0
        for kind, *arguments in steps:
            if kind == "append":
                spool.append(arguments[0])
                written += arguments[0]
            elif kind == "read":
                start = min(max(arguments[0], forgotten), len(written))
                assert spool.read(start, arguments[1]) == written[start : start + arguments[1]]
            elif kind == "forget":
                forgotten = max(forgotten, min(arguments[0], len(written)))
                spool.forget_before(forgotten)
            else:
                spool.close()
                if kind == "crash" and files_of(folder):
                    # The length of a record that was never written whole.
                    with (folder / files_of(folder)[-1]).open("ab") as file:
                        file.write(arguments[0])
                spool = Spool(folder, segment_records)
            assert spool.end == len(written)
        spool.close()


def test_records_are_numbered_from_zero_and_read_in_any_portion(folder):
    spool = Spool(folder)
    spool.append([b"a", b"b", b"c"])
    assert spool.read(0, 2) == [b"a", b"b"]
    assert spool.read(2, 10) == [b"c"]
    assert spool.read(3, 10) == []
    assert spool.read(1, 1) == [b"b"]


def test_record_written_in_half_is_cut_off(folder):
    spool = Spool(folder)
    spool.append([b"whole"])
    spool.close()
    with (folder / files_of(folder)[0]).open("ab") as file:
        file.write(b"\x09\x00\x00\x00half")
    spool = Spool(folder)
    assert spool.end == 1
    spool.append([b"next"])
    assert spool.read(0, 10) == [b"whole", b"next"]


def test_every_cut_of_the_last_record_is_recovered(tmp_path):
    whole = tmp_path / "whole"
    spool = Spool(whole)
    spool.append([b"one", b"two"])
    spool.close()
    content = (whole / files_of(whole)[0]).read_bytes()
    for size in range(7, len(content)):
        folder = tmp_path / f"cut-{size}"
        folder.mkdir()
        (folder / files_of(whole)[0]).write_bytes(content[:size])
        assert Spool(folder).read(0, 10) == [b"one"]


def test_segments_are_removed_when_nothing_in_them_is_needed(folder):
    spool = Spool(folder, segment_records=2)
    for number in range(6):
        spool.append([str(number).encode()])
    assert len(files_of(folder)) == 3
    spool.forget_before(3)
    assert len(files_of(folder)) == 2
    assert spool.read(3, 10) == [b"3", b"4", b"5"]
    spool.forget_before(6)
    assert len(files_of(folder)) == 1


def test_reopened_spool_continues_numbering_after_old_segments_were_removed(folder):
    spool = Spool(folder, segment_records=2)
    for number in range(6):
        spool.append([str(number).encode()])
    spool.forget_before(6)
    spool.close()
    reopened = Spool(folder, segment_records=2)
    assert reopened.end == 6
    reopened.append([b"6"])
    assert reopened.read(6, 10) == [b"6"]


def test_reading_on_does_not_start_from_the_beginning(folder):
    spool = Spool(folder)
    spool.append([str(number).encode() for number in range(1000)])
    portions = [spool.read(start, 100) for start in range(0, 1000, 100)]
    assert list(itertools.chain(*portions)) == [str(number).encode() for number in range(1000)]


def test_segment_that_another_thread_has_just_begun_is_not_read(folder):
    spool = Spool(folder, segment_records=2)
    spool.append([b"a", b"b"])
    spool._roll()
    assert spool.read(0, 10) == [b"a", b"b"]


def test_append_that_the_disk_cannot_hold_leaves_no_half_record_behind(folder):
    spool = Spool(folder)
    spool.append([b"first"])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))  # The file can grow by a few bytes, then writing fails.
    try:
        with pytest.raises(OSError, match="File too large"):
            spool.append([b"does not fit" * 10])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    spool.append([b"second"])
    assert spool.read(0, 10) == [b"first", b"second"]
    assert Spool(folder).read(0, 10) == [b"first", b"second"]


@given(
    steps=st.lists(st.one_of(st.integers(1, 40), st.sampled_from(["take", "some", "back"])), max_size=30),
    kept_bytes=st.sampled_from([0, 150, 1 << 20]),
)
def test_elements_are_taken_in_order_and_again_after_going_back_however_many_are_kept_in_memory(steps, kept_bytes):
    with TemporaryDirectory() as folder, mock.patch.object(element_spool, "_KEPT_BYTES", kept_bytes):
        spool = ElementSpool(Path(folder), 1000, 10**6, lambda: None)
        spool.limit(20)
        added: list[int] = []
        taken: list[int] = []
        for step in steps:
            if isinstance(step, int):
                values = list(range(len(added), len(added) + step))
                spool.add_all(values)
                added += values
            elif step == "back":
                spool.go_back(0)
                taken = []
            else:
                chunks = spool.take(None if step == "take" else 7)
                records = [value for chunk in chunks for event in read_chunk(chunk) for value in event.values]
                assert len(records) == spool.records_taken
                taken += records
            assert taken == added[: len(taken)]
            assert spool.has_waiting == (len(taken) < len(added))
            assert spool.has_space == (len(added) - len(taken) < 20)
        spool.release()


class Large:
    """An element that plain pickle refuses, as a class that only this process knows."""

    def __init__(self, size: int) -> None:
        self.content = (lambda: None, "x" * size)


SIZES = {"text": lambda size: "x" * size, "tuples": lambda size: (1, "x" * size), "cloudpickle": Large}


@pytest.mark.parametrize("element_of", SIZES.values(), ids=SIZES)
@given(sizes=st.lists(st.tuples(st.integers(1, 200), st.sampled_from([1, 1_000, 30_000])), max_size=8))
@settings(max_examples=30, deadline=None)
def test_no_more_bytes_wait_than_may_and_one_element_more(element_of, sizes):
    most_bytes = 40_000
    with TemporaryDirectory() as folder:
        spool = ElementSpool(Path(folder), 100_000, most_bytes, lambda: None)
        waiting: list[int] = []
        for number, size in sizes:
            for _ in range(number):
                if not spool.has_space:
                    assert sum(waiting) > most_bytes / 2 or len(waiting) > 20  # Small ones have their own cost.
                    spool.take(None)
                    waiting = []
                waiting.append(size)
                spool.add(element_of(size), None)
                assert sum(waiting) - size <= most_bytes
        spool.release()


@pytest.mark.parametrize("failing", ["adding", "adding all", "taking", "going back"])
def test_elements_that_a_full_disk_refuses_are_written_later(tmp_path, monkeypatch, failing):
    """Whoever has emitted them does not do that again: the state of a source function is behind them."""
    spool = ElementSpool(tmp_path, 1000, 10**6, lambda: None)
    spool.add(0, None)
    assert elements(spool.take(None)) == [0]
    for number in range(1, 4):
        spool.add(number, None)
    # Chunks grow: the last element waits in memory for others to share one with.
    with monkeypatch.context() as full:
        full.setattr(Spool, "append", refuse)
        with pytest.raises(OSError, match="No space left"):
            match failing:
                case "adding":
                    for _ in range(100):
                        spool.add(4, None)
                case "adding all":
                    spool.add_all([4, 4])
                case "taking":
                    spool.take(None)
                case "going back":
                    spool.go_back(1)
    assert spool.has_waiting
    spool.go_back(0)
    found = elements(spool.take(None))
    assert found[:4] == [0, 1, 2, 3] and set(found[4:]) <= {4}
    assert not spool.has_waiting


def refuse(spool, records):
    raise OSError(errno.ENOSPC, "No space left on device")


def elements(chunks):
    return [value for chunk in chunks for event in read_chunk(chunk) for value in event.values]
