"""What programs import from PyFlink, of any version from 1.13 on, can be imported; and members of classes are there.

`pyflink_names.json` is made by `tests/pyflink/collect_names.py` from PyFlink's sources.
"""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.refused_names import RefusedName
from penstock.compat.absent import AbsentName
from penstock.compat.pyflink_alias import pyflink_as_penstock

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "pyflink_names.json").read_text(encoding="utf-8")
)
NAMES = {module: " ".join(groups.values()).split() for module, groups in DATA["names"].items()}
MEMBERS = {name: " ".join(groups.values()).split() for name, groups in DATA["members"].items()}

# Only Java's side can call these.
WITHOUT_MEANING = {
    "to_j_row_kind", "get_java_object", "parse_jars_value", "get_java_output_tag", "get_java_memory_size",
    "get_java_slot_sharing_group", "AccumulateType",
}  # fmt: skip


def test_the_data_is_that_of_all_versions():
    assert [version.rpartition(".")[0] for version in DATA["versions"]] == ["1.13", "1.15", "1.17", "1.20", "2.3"]
    assert (len(NAMES), len(MEMBERS)) > (60, 250)


@pytest.mark.parametrize("module", NAMES)
def test_every_name_of_every_pyflink_module_can_be_imported(module):
    with pyflink_as_penstock():
        found = importlib.import_module(module)
        assert [name for name in NAMES[module] if not hasattr(found, name)] == []


def test_a_name_has_one_meaning_wherever_it_is_imported_from():
    """Where a module has a class from another one, it is that class."""
    different = []
    with pyflink_as_penstock():
        for cls in MEMBERS:
            home, _, name = cls.rpartition(".")
            own = getattr(importlib.import_module(home), name)
            if isinstance(own, AbsentName):
                continue
            for module, names in NAMES.items():
                found = getattr(importlib.import_module(module), name) if name in names else own
                if found is not own and not isinstance(found, AbsentName):
                    different.append((module, name))
    assert different == []


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_of_every_class_is_there(name):
    module, _, class_name = name.rpartition(".")
    with pyflink_as_penstock():
        cls = getattr(importlib.import_module(module), class_name)
    if isinstance(cls, RefusedName):
        return
    missing = [each for each in MEMBERS[name] if inspect.getattr_static(cls, each, None) is None]
    assert set(missing) - WITHOUT_MEANING == set()


def test_names_without_counterpart_can_be_imported_derived_from_and_annotated_with_but_not_used():
    program = """
from pyflink.java_gateway import get_gateway
from pyflink.dataset import ExecutionEnvironment
from pyflink.table.module import HiveModule
from pyflink.table.catalog import HiveCatalog
class Own(HiveCatalog):
    def eval(self, x: HiveModule | None) -> "HiveCatalog": return x
"""
    names: dict[str, Any] = {}
    with pyflink_as_penstock():
        exec(program, names)
    for use in ("get_gateway()", "ExecutionEnvironment.get()", "HiveModule()", "Own()"):
        with pytest.raises(UnsupportedFeatureError, match=r"pyflink\.|Own"):
            eval(use, names)


def test_internal_functions_that_programs_use_compute_what_they_do_on_pyflink():
    program = """
from pyflink.common.serialization import SimpleStringEncoder
from pyflink.datastream.data_stream import _get_one_input_stream_operator
from pyflink.datastream.window import long_to_int_with_bit_mixing, mod_inverse
encoder = SimpleStringEncoder()
"""
    names: dict[str, Any] = {}
    with pyflink_as_penstock():
        exec(program, names)
        with pytest.raises(UnsupportedFeatureError, match="internal to PyFlink"):
            names["_get_one_input_stream_operator"]()
    assert names["mod_inverse"](3) == -559240533333333
    assert names["long_to_int_with_bit_mixing"](5) == 739245978801580075080537957964831963804


def test_the_names_are_only_found_while_the_alias_is_in_place():
    import penstock.datastream.window as window

    with pyflink_as_penstock():
        assert importlib.import_module("pyflink.datastream.window").get_gateway is not None
    assert not hasattr(window, "get_gateway")


@pytest.mark.parametrize(
    "module",
    ["datastream.formats.csv", "datastream.formats.json", "datastream.formats.avro", "datastream.connectors.kafka",
     "common.serialization", "table", "datastream.window"],
)  # fmt: skip
def test_a_module_can_be_the_first_that_a_program_imports(module):
    program = f"""
from penstock.compat.pyflink_alias import pyflink_as_penstock
with pyflink_as_penstock():
    import pyflink.{module}
"""
    subprocess.run([sys.executable, "-c", program], check=True)
