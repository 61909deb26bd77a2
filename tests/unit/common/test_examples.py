from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import penstock.common

MODULES = [module.name for module in pkgutil.iter_modules(penstock.common.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_the_docstrings_run(name):
    failed, _ = doctest.testmod(importlib.import_module(f"penstock.common.{name}"))
    assert failed == 0
