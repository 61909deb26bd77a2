"""`_metadata`: everything comes back, and what is damaged is found out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint import metadata as metadata_module
from penstock.checkpoint.metadata import (
    CANONICAL,
    NATIVE,
    CheckpointMetadata,
    OperatorEntry,
    VertexEntry,
    decode_metadata,
)
from penstock.common.exceptions import CheckpointError, CorruptStateError
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.table import Extent

names = st.text(max_size=12)
# Others lie outside of the checkpoint's folder, and are refused.
file_names = names.filter(lambda name: not name.startswith("/") and ".." not in name.split("/"))
by_operator = st.dictionaries(names, st.binary(max_size=30), max_size=3)


def test_file_of_an_earlier_version_may_hold_keys_that_have_moved():
    handle = StateHandle("f", 1, 1, Extent.ALL, frozenset({("o", "keyed", "sum")}), has_fixed_keys=True)
    written = metadata_module._handle_to_json(handle)
    assert metadata_module._handle_from_json(written) == handle
    del written["fixed-keys"]
    assert not metadata_module._handle_from_json(written).has_fixed_keys


handles = st.builds(
    StateHandle,
    name=file_names,
    epoch=st.integers(0, 2**40),
    size=st.integers(0, 2**50),
    extent=st.sampled_from(Extent),
    states=st.frozensets(st.tuples(names, st.sampled_from(["keyed", "operator", "memory"]), names), max_size=3),
)
vertices = st.builds(
    VertexEntry,
    operators=st.lists(st.builds(OperatorEntry, names, names, st.none() | names), max_size=3).map(tuple),
    parallelism=st.integers(1, 1000),
    max_parallelism=st.integers(1, 32768),
    subtasks=st.lists(st.lists(handles, max_size=2).map(tuple), max_size=3).map(tuple),
)
metadata_of_any_kind = st.builds(
    CheckpointMetadata,
    job_id=names,
    job_name=names,
    checkpoint_id=st.integers(0, 2**40),
    timestamp_ms=st.integers(0, 2**45),
    topology=names,
    vertices=st.lists(vertices, max_size=3).map(tuple),
    positions=by_operator,
    committables=by_operator,
    savepoint_format=st.sampled_from([None, CANONICAL, NATIVE]),
)
SMALL = CheckpointMetadata("a" * 32, "job", 7, 1, "t", (), {"source": b"at 5"})


@given(metadata_of_any_kind)
def test_everything_comes_back(metadata):
    assert decode_metadata(metadata.encode(), "here") == metadata


@given(metadata_of_any_kind, st.data())
def test_no_part_of_it_is_taken_for_the_whole(metadata, data):
    content = metadata.encode()
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(CorruptStateError, match="here"):
        decode_metadata(content[:cut], "here")


@given(metadata_of_any_kind, st.data())
def test_changed_byte_is_found_out(metadata, data):
    content = bytearray(metadata.encode())
    first_line = content.index(b"\n")
    at = data.draw(st.integers(first_line + 1, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptStateError, match="here is damaged or cut off: its checksum does not match"):
        decode_metadata(bytes(content), "here")


@pytest.mark.parametrize("content", [b"", b"\n", b"[]\n{}", b'{"format": "x"}\n', b"\x00\xff", b"null\nnull"])
def test_something_else_is_no_metadata(content):
    with pytest.raises(CorruptStateError, match="here is not the metadata of a checkpoint, or is damaged"):
        decode_metadata(content, "here")


def test_newer_format_is_refused_and_is_no_damage():
    header, _, body = SMALL.encode().partition(b"\n")
    newer = json.dumps({**json.loads(header), "format": 99}).encode() + b"\n" + body
    with pytest.raises(CheckpointError, match=r"here has format 99, and this version .* reads up to 1") as caught:
        decode_metadata(newer, "here")
    assert not isinstance(caught.value, CorruptStateError)


def test_it_is_text_that_people_can_read():
    body = json.loads(SMALL.encode().partition(b"\n")[2])
    assert (body["job-name"], body["checkpoint-id"], body["savepoint-format"]) == ("job", 7, None)


def test_states_of_an_operator_are_listed_by_kind():
    handle = StateHandle("f", 1, 1, Extent.ALL, frozenset({("o", "keyed", "sum"), ("o", "memory", "task")}))
    other = StateHandle("g", 1, 1, Extent.ALL, frozenset({("o", "keyed", "max"), ("p", "operator", "list")}))
    vertex = VertexEntry((OperatorEntry("o", "sums", "uid"),), 2, 128, ((handle,), (other,)))
    assert vertex.states_of("o") == {"keyed": {"sum", "max"}}
    assert str(vertex.operators[0]) == "'sums' (uid 'uid')"
