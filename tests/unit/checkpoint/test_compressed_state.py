"""State files are compressed where a job asks for it, and are read whether they are or not."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration, Types
from penstock.common.exceptions import CorruptStateError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.state import state_file
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.state_file import StateFileReader, StateFileWriter


def written(values, is_compressed):
    out = io.BytesIO()
    writer = StateFileWriter(out, is_compressed)
    for number, value in enumerate(values):
        writer.add("operator", "keyed", f"state-{number}", encode_state(value), has_times=False)
    writer.finish()
    assert writer.size == len(out.getvalue())
    return out.getvalue()


def reader_of(content):
    return StateFileReader("some-file", io.BytesIO(content), len(content))


@given(st.lists(st.one_of(st.integers(), st.text(), st.lists(st.integers()))), st.booleans())
def test_state_is_read_as_it_was_written(values, is_compressed):
    reader = reader_of(written(values, is_compressed))
    assert [value for _, value in reader.values("keyed")] == values


def test_compressed_file_is_smaller_and_only_it_needs_the_newer_format():
    values = ["again and again " * 1000]
    plain, compressed = written(values, False), written(values, True)
    assert len(compressed) < len(plain) / 10
    assert b'{"format": 2' in plain and b'{"format": 3' in compressed
    assert b"is_compressed" not in plain  # Earlier versions know no such field.


def test_damaged_block_is_found_before_it_is_unpacked():
    content = bytearray(written(["x" * 100], True))
    content[12] ^= 0xFF
    with pytest.raises(CorruptStateError, match="its checksum does not match"):
        list(reader_of(bytes(content)).values("keyed"))


def test_file_of_a_newer_format_is_refused_with_what_to_do(monkeypatch):
    content = written([1], True)
    monkeypatch.setattr(state_file, "FORMAT_VERSION", 2)
    with pytest.raises(CorruptStateError, match=r"has format 3, .* reads up to 2; use the version that wrote it, or a"):
        reader_of(content)


class Counting(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        if value == 6:
            raise ValueError("seven elements are enough")
        yield self.count.value()


@pytest.mark.parametrize("is_compressed", [True, False])
def test_files_of_a_job_are_compressed_if_it_says_so(tmp_path, is_compressed):
    settings = {
        "execution.target": "inline",
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.snapshot-compression": str(is_compressed).lower(),
        "penstock.epoch.max-records": "2",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)
    env.from_sequence(0, 6).key_by(lambda value: 0).process(Counting()).print()
    with pytest.raises(Exception, match="enough"):
        env.execute()
    files = [path.read_bytes() for path in tmp_path.rglob("v*-s*-e*") if path.is_file()]
    assert files
    assert {block.is_compressed for each in files for block in reader_of(each).blocks} == {is_compressed}
