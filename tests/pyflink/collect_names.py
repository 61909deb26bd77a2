"""Collect what programs can import from PyFlink, for versions old and new: `pyflink_names.json`.

    pip download --no-deps apache-flink==1.20.1 -d downloads      # and others; sources and wheels alike
    python tests/pyflink/collect_names.py downloads/* > tests/data/pyflink_names.json

Sources are read, not imported: old versions need a Python that is no longer there. For each module the result says
which names `from module import name` gives, and for each class its members, with the versions that have them. Names
that a module has from outside of PyFlink, such as `List`, are left out.
"""

from __future__ import annotations

import ast
import json
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Tables are another API. The rest is PyFlink's own machinery, tests and examples.
_LEFT_OUT = ("table", "examples", "fn_execution", "testing", "shell", "gen_protos", "pyflink_callback_server",
             "pyflink_gateway_server", "find_flink_home", "proto", "bin")  # fmt: skip


@dataclass
class Module:
    is_package: bool
    tree: ast.Module
    own: dict[str, ast.AST] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    all_names: list[str] | None = None


def main(archives: Iterable[str]) -> None:
    versions = sorted(((_version_of(path), path) for path in archives), key=lambda pair: _number(pair[0]))
    names: dict[str, dict[str, list[str]]] = {}
    members: dict[str, dict[str, list[str]]] = {}
    for version, path in versions:
        modules = {name: _read(name, text, is_package) for name, text, is_package in _sources(path)}
        for module in sorted(modules):
            for name in sorted(_names_of(module, modules)):
                names.setdefault(module, {}).setdefault(name, []).append(version)
            for name, node in modules[module].own.items():
                if isinstance(node, ast.ClassDef) and not name.startswith("_"):
                    for member in sorted(set(_members_of(node))):
                        members.setdefault(f"{module}.{name}", {}).setdefault(member, []).append(version)
    known = [version for version, _ in versions]
    document = {
        "versions": known,
        "names": {module: _by_versions(found, known) for module, found in sorted(names.items())},
        "members": {name: _by_versions(found, known) for name, found in sorted(members.items())},
    }
    print(_compact(document))


def _by_versions(found: dict[str, list[str]], known: list[str]) -> dict[str, str]:
    """Names grouped by the versions that have them, as one text each: that keeps the file small and readable."""
    groups: dict[str, list[str]] = {}
    for name, versions in found.items():
        groups.setdefault("all" if versions == known else " ".join(versions), []).append(name)
    return {versions: " ".join(sorted(group)) for versions, group in sorted(groups.items())}


def _compact(document: dict[str, object]) -> str:
    lines = [f'"versions": {json.dumps(document["versions"])}']
    for part in ("names", "members"):
        entries: dict[str, object] = document[part]  # type: ignore[assignment]
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in entries.items())
        lines.append(f'"{part}": {{\n{rows}\n}}')
    return "{" + ",\n".join(lines) + "}"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _version_of(path: str) -> str:
    name = Path(path).name.replace("apache_flink", "apache-flink")
    return name.removeprefix("apache-flink-").removesuffix(".tar.gz").split("-")[0]


def _sources(path: str) -> Iterator[tuple[str, str, bool]]:
    for name, data in _python_files(path):
        parts = list(Path(name).with_suffix("").parts)
        if "pyflink" not in parts:
            continue
        parts = parts[parts.index("pyflink") :]
        is_package = parts[-1] == "__init__"
        parts = parts[:-1] if is_package else parts
        if (len(parts) > 1 and parts[1] in _LEFT_OUT) or any(part == "tests" for part in parts):
            continue
        yield ".".join(parts), data.decode("utf-8"), is_package


def _python_files(path: str) -> Iterator[tuple[str, bytes]]:
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    yield name, wheel.read(name)
        return
    with tarfile.open(path) as sources:
        for entry in sources:
            data = sources.extractfile(entry) if entry.isfile() and entry.name.endswith(".py") else None
            if data is not None:
                yield entry.name, data.read()


def _read(name: str, text: str, is_package: bool) -> Module:
    module = Module(is_package, ast.parse(text))
    for node in _statements(module.tree.body):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                module.own[node.name] = node
            case ast.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        module.own[target.id] = node
                        if target.id == "__all__":
                            module.all_names = [str(each) for each in ast.literal_eval(node.value)]
            case ast.AnnAssign(target=ast.Name(id=own)):
                module.own[own] = node
            case ast.ImportFrom():
                origin = _origin(name, is_package, node)
                for alias in node.names:
                    if alias.name == "*":
                        module.stars.append(origin)
                    else:
                        module.imported[alias.asname or alias.name] = (origin, alias.name)
    return module


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            is_for_checkers = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            yield from () if is_for_checkers else _statements(node.body)
        else:
            yield node


def _origin(name: str, is_package: bool, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    base = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _names_of(name: str, modules: dict[str, Module], is_star: bool = False) -> set[str]:
    """What `from name import ...` gives; with `is_star`, what `from name import *` gives."""
    module = modules[name]
    if is_star and module.all_names is not None:
        return set(module.all_names)
    found = {each for each in module.own if not each.startswith("_")}
    found |= {
        each
        for each, (origin, original) in module.imported.items()
        if not each.startswith("_") and _is_pyflinks(origin, original, modules)
    }
    for origin in module.stars:
        found |= _names_of(origin, modules, is_star=True) if origin in modules else set()
    return found


def _is_pyflinks(origin: str, name: str, modules: dict[str, Module]) -> bool:
    """True for PyFlink's own names; not for what a module has got from elsewhere, and not for those left out."""
    seen: set[tuple[str, str]] = set()
    while origin in modules and (origin, name) not in seen:
        seen.add((origin, name))
        module = modules[origin]
        if name in module.own or f"{origin}.{name}" in modules:
            return True
        if name not in module.imported:
            return any(name in _names_of(star, modules, is_star=True) for star in module.stars if star in modules)
        origin, name = module.imported[name]
    return False


def _members_of(cls: ast.ClassDef) -> Iterator[str]:
    for node in cls.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not name.startswith("_"):
                    yield name
            case ast.Assign(targets=targets):
                yield from (each.id for each in targets if isinstance(each, ast.Name) and not each.id.startswith("_"))


if __name__ == "__main__":
    main(sys.argv[1:])
