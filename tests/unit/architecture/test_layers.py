"""Dependencies between the packages run one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock

ROOT = Path(penstock.__file__).parent
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))

# Package -> the packages it may import. `metrics` holds values that functions are handed, like `common`;
# `files` turns a URI into a store.
_VALUES = {"common", "files", "metrics"}
_PROGRAM = _VALUES | {"graph", "datastream"}
_RUNTIME = _PROGRAM | {"runtime"}
_DRIVER = _RUNTIME | {"checkpoint", "jobmaster"}
ALLOWED: dict[str, set[str]] = {
    "common": set(),
    "files": {"common"},
    "metrics": {"common"},
    "graph": _VALUES,
    "datastream": _VALUES | {"graph"},
    "runtime": _PROGRAM,
    "checkpoint": _VALUES | {"graph", "runtime"},
    "jobmaster": _RUNTIME | {"checkpoint"},
    "spark": _DRIVER,
    "table": _RUNTIME | {"spark"},
    "state_processor": _RUNTIME | {"checkpoint", "spark"},
    "rest": _DRIVER,
    "cluster": _DRIVER | {"rest"},
}

# What a package looks up by name, because it stands above it or needs PySpark: (package, module) -> why.
SEAMS = {
    ("datastream", "penstock.cluster.start"): "the API does not know what runs its jobs",
    ("datastream", "penstock.spark.session"): "streams made of DataFrames need a session",
    ("datastream", "penstock.spark.file_batches"): "streams written by Spark's writers",
    ("jobmaster", "penstock.spark.spark_executor"): "nothing but the Spark target needs PySpark",
    ("rest", "penstock.spark.task_managers"): "executors are listed where Spark runs",
    ("cluster", "penstock.spark.task_managers"): "executors are listed where Spark runs",
    ("cluster", "penstock.spark.session"): "a job manager makes its session before the first job",
    ("cluster", "penstock.cli.uploaded_program"): "the process in which an uploaded program defines its job",
    ("runtime", "penstock.jobmaster"): "savepoints of earlier versions name modules by where they were",
}


def package_of(module: Path) -> str:
    return module.parts[0] if len(module.parts) > 1 else ""


def imports_of(module: Path) -> Iterator[tuple[str, int]]:
    """Every dotted name that a module imports, anywhere in it; imports for annotations alone do not count."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    for_types = {id(node) for guard in ast.walk(tree) if _is_type_checking(guard) for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively; write the whole name"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_module_imports_only_the_layers_below_it(module: Path):
    package = package_of(module)
    if package not in ALLOWED:
        return  # testing, cli, demo and compat join everything.
    allowed = ALLOWED[package] | {package}
    wrong = [
        f"{module}:{line} imports {name}"
        for name, line in imports_of(module)
        if name.startswith("penstock.") and name.split(".")[1] not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_only_the_spark_package_imports_pyspark(module: Path):
    if package_of(module) == "spark":
        return
    imported = [(name, line) for name, line in imports_of(module) if name.split(".")[0] in ("pyspark", "py4j")]
    if package_of(module) == "state_processor":  # In functions only: to import it must not need Spark.
        at_once = {node.lineno for node in ast.parse((ROOT / module).read_text(encoding="utf-8")).body}
        imported = [(name, line) for name, line in imported if line in at_once]
    assert imported == []


@pytest.mark.parametrize("module", [module for module in MODULES if package_of(module) == "table"], ids=str)
def test_tables_import_spark_in_functions_only(module: Path):
    """Types and functions of tables are used in workers too, and there without Spark's session or Java."""
    at_once = {node.lineno for node in ast.parse((ROOT / module).read_text(encoding="utf-8")).body}
    imported = [name for name, line in imports_of(module) if line in at_once and name.startswith("penstock.spark")]
    assert imported == []


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_only_state_itself_works_on_the_dictionaries_of_its_tables(module: Path):
    """Others use the methods of `StateTable`; generated loops get a namespace by `open_namespace`, `open_changes`."""
    if module.parts[:2] == ("runtime", "state"):
        return
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    used = [
        f"{module}:{node.lineno} uses .{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("entries", "changed")
    ]
    assert used == []


def names_looked_up_in(module: Path) -> Iterator[str]:
    """Modules of other packages that are named in strings: an import by name is an import all the same."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.rstrip(".")
            if name.startswith("penstock.") and _is_module(name) and name.split(".")[1] != package_of(module):
                yield name


def _is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split(".")[1:])
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_lookups_by_name_that_reach_up_are_few_and_known():
    reaching_up = {
        (package_of(module), name)
        for module in MODULES
        for name in names_looked_up_in(module)
        if package_of(module) in ALLOWED and name.split(".")[1] not in ALLOWED[package_of(module)]
    }
    assert reaching_up == set(SEAMS)


def test_every_package_has_a_place_in_the_layers():
    packages = {package_of(module) for module in MODULES} - {""}
    on_top = {"testing", "cli", "demo", "compat"}
    assert packages - on_top == set(ALLOWED)


@pytest.mark.parametrize("name", ["function_checkpoints", "runtime_context", "split_watermarks", "user_function"])
def test_modules_that_operators_import_can_be_imported_first(name: str):
    subprocess.run([sys.executable, "-c", f"import penstock.runtime.{name}"], check=True)
