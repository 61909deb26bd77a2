"""Classes that savepoints of version 0.1 may hold are found wherever they are today."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path

import pytest

from penstock.runtime.state.codec import decode_state
from penstock.runtime.state.contents import load
from penstock.runtime.state.moved_modules import module_today

DATA = Path(__file__).parents[2] / "data" / "classes_of_version_0_1.txt"


def test_every_class_of_connectors_and_sources_is_found_by_its_name_of_then():
    lost = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        module, name = line.split(":")
        if not hasattr(importlib.import_module(module_today(module)), name):
            lost.append(line)
    assert lost == []


@pytest.mark.parametrize("read", [decode_state, load])
def test_a_pickle_of_then_is_read_today(read):
    # Protocol 0 names a class in plain text: module, newline, name.
    written = b"cpenstock.datastream.connectors.kafka_offsets\nKafkaTopicPartition\n."
    assert read(written).__module__ == "penstock.datastream.connectors.kafka.offsets"
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(written)


@pytest.mark.parametrize("read", [decode_state, load])
def test_a_module_that_is_nowhere_is_still_an_error(read):
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        read(b"cno_such_module\nThing\n.")
