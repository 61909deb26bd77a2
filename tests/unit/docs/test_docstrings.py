"""What users import is described: every public class and method has a docstring, and its examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import sys

import pytest
from tests.unit.docs.code_blocks import ROOT

import penstock
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.launch import Launch, launching

sys.path.insert(0, str(ROOT / "docs" / "site"))
api_reference = importlib.import_module("api_reference")

MODULES = [
    module.name
    for package in ("common", "datastream", "metrics", "testing")
    for module in pkgutil.walk_packages([f"{penstock.__path__[0]}/{package}"], f"penstock.{package}.")
]


@pytest.mark.parametrize("page", api_reference.PAGES, ids=lambda page: page.path)
def test_every_public_name_has_a_docstring(page):
    members = dict(api_reference.members_of(page))
    missing = [name for name, value in members.items() if not value.__doc__]
    missing += [
        f"{name}.{method}"
        for name, value in members.items()
        if inspect.isclass(value)
        for method in api_reference.public_methods(value)
        if not inspect.getdoc(getattr(value, method))
    ]
    assert missing == []


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module, runner = importlib.import_module(name), doctest.DocTestRunner()
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        with launching(Launch(configuration={"execution.target": "inline", "parallelism.default": "1"})):
            example.globs["env"] = StreamExecutionEnvironment.get_execution_environment()
            runner.run(example)
    assert runner.failures == 0
