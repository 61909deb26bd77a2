"""What users import is described: every public class has a docstring with an example, every method a docstring.

The examples run.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import sys

import pytest
from tests.unit.docs.code_blocks import ROOT

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.launch import Launch, launching

sys.path.insert(0, str(ROOT / "docs" / "site"))
api_reference = importlib.import_module("api_reference")

SOURCE = ROOT / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
#: What these pages describe is raised, or needs Spark: docs/state_processor.md has programs, which a test runs.
WITHOUT_EXAMPLES = ("exceptions", "state-processor")
PUBLIC = {name: value for page in api_reference.PAGES for name, value in api_reference.members_of(page)}


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


def has_example(value: type) -> bool:
    methods = (inspect.getdoc(getattr(value, method)) for method in api_reference.public_methods(value))
    return any(">>>" in (text or "") for text in (value.__doc__, *methods))


def has_or_names_example(value: type) -> bool:
    named = re.search(r"`(\w+)(?:\.\w+)?`(?: and `\w+`)? (?:has an|have) example", value.__doc__ or "")
    if named is not None:
        return has_example(PUBLIC[named[1]])
    if (value.__doc__ or "").startswith("Not available on Spark; use "):
        return True
    adds_nothing = not [name for name in vars(value) if not name.startswith("_")]
    return has_example(value) or (adds_nothing and any(has_example(base) for base in value.__mro__[1:-1]))


@pytest.mark.parametrize("page", api_reference.PAGES, ids=lambda page: page.path)
def test_every_public_class_has_an_example_or_names_a_class_that_has_one(page):
    if page.path in WITHOUT_EXAMPLES:
        return
    classes = {name: value for name, value in api_reference.members_of(page) if inspect.isclass(value)}
    assert [name for name, value in classes.items() if not has_or_names_example(value)] == []


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module, runner = importlib.import_module(name), doctest.DocTestRunner()
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        with launching(Launch(configuration={"execution.target": "inline", "parallelism.default": "1"})):
            example.globs["env"] = StreamExecutionEnvironment.get_execution_environment()
            runner.run(example)
    assert runner.tries > 0 and runner.failures == 0
