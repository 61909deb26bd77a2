from __future__ import annotations

import importlib
import os
import subprocess
import sys
from types import ModuleType

import pytest

import penstock
import penstock.common.exceptions
from penstock.compat.pyflink_alias import pyflink_as_penstock


def alias_modules() -> list[str]:
    return [name for name in sys.modules if name == "pyflink" or name.startswith("pyflink.")]


def test_pyflink_modules_are_the_very_same_objects():
    with pyflink_as_penstock():
        assert importlib.import_module("pyflink") is penstock
        assert importlib.import_module("pyflink.common") is penstock.common
        assert importlib.import_module("pyflink.common.exceptions") is penstock.common.exceptions


def test_classes_imported_by_both_names_are_identical():
    with pyflink_as_penstock():
        namespace: dict[str, object] = {}
        exec("from pyflink.common.exceptions import PenstockError", namespace)
        assert namespace["PenstockError"] is penstock.common.exceptions.PenstockError


def test_modules_keep_their_own_name_and_spec():
    with pyflink_as_penstock():
        importlib.import_module("pyflink.common.exceptions")
    assert penstock.common.exceptions.__name__ == "penstock.common.exceptions"
    assert penstock.common.exceptions.__spec__.name == "penstock.common.exceptions"


def test_alias_is_gone_after_the_run_even_when_it_fails():
    finders = list(sys.meta_path)
    with pytest.raises(RuntimeError, match="script failed"), pyflink_as_penstock():
        importlib.import_module("pyflink.common")
        raise RuntimeError("script failed")
    assert (alias_modules(), sys.meta_path) == ([], finders)


def test_a_pyflink_imported_before_comes_back(monkeypatch):
    real = ModuleType("pyflink")
    monkeypatch.setitem(sys.modules, "pyflink", real)
    with pyflink_as_penstock():
        assert importlib.import_module("pyflink") is penstock
    assert sys.modules["pyflink"] is real


def test_module_that_penstock_lacks_is_named():
    message = r"pyflink.nonsense has no counterpart in Penstock"
    with pyflink_as_penstock(), pytest.raises(ImportError, match=message):
        exec("import pyflink.nonsense")


@pytest.mark.parametrize("package", ["pyflink", "pyflink.common"])
def test_name_that_penstock_lacks_is_named_with_the_package_that_lacks_it(package):
    message = rf"cannot import name 'Nonsense' from '{package.replace('pyflink', 'penstock')}'"
    with pyflink_as_penstock(), pytest.raises(ImportError, match=message):
        exec(f"from {package} import Nonsense")


def test_processes_started_inside_see_the_alias_too():
    ask = "import pyflink.common.exceptions as e, penstock.common.exceptions as p; assert e is p"
    before = os.environ.get("PYTHONPATH")
    with pyflink_as_penstock():
        subprocess.run([sys.executable, "-c", ask], check=True)
    assert os.environ.get("PYTHONPATH") == before
