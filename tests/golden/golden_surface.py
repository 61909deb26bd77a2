"""What users and their tools hold on to: as text, so that it can be compared with what it was.

    python tests/golden/golden_surface.py

adds what is new to `surface.json`. Nothing is taken out of it.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from penstock.cli import main
from penstock.common import config_keys
from penstock.common.config_options import ConfigOption
from penstock.jobmaster.metrics.catalogue import CATALOGUE
from penstock.rest.description.openapi import DESCRIBED
from penstock.rest.description.schemas import schema_of

PINNED = Path(__file__).parent / "surface.json"
OWN_MODULES = ("penstock.testing", "penstock.state_processor", "penstock.notebook")


def surface() -> dict[str, Any]:
    return {
        "configuration keys": sorted({key for option in options() for key in (option.key, *option.old_keys)}),
        "command line": {path: flags_of(command) for path, command in commands("penstock", main)},
        "REST": {name: sorted(answer_fields(each.answer)) for name, each in DESCRIBED.items()},
        "metrics": sorted(f"{each.scope.value}.{each.name}" for each in CATALOGUE),
        "own API": {name: parameters_of(function) for name, function in own_functions()},
    }


def options() -> list[ConfigOption[Any]]:
    return [value for value in vars(config_keys).values() if isinstance(value, ConfigOption)]


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            if not inner.hidden:
                yield from commands(f"{path} {name}", inner)


def flags_of(command: click.Command) -> list[str]:
    return sorted(flag for each in command.params if isinstance(each, click.Option) for flag in each.opts)


def answer_fields(answer: Any) -> Iterator[str]:
    return fields_in(schema_of(answer), "") if not isinstance(answer, str) else iter([f"text: {answer}"])


def fields_in(schema: Any, path: str) -> Iterator[str]:
    """Names of fields as `jobs[].id`, wherever they are in the schema."""
    for name, inner in schema.get("properties", {}).items():
        at = f"{path}.{name}" if path else name
        yield at
        yield from fields_in(inner, at)
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from fields_in(inner, path)
    for many in ("items", "additionalProperties"):
        if isinstance(schema.get(many), dict):
            yield from fields_in(schema[many], f"{path}[]")


def own_functions() -> Iterator[tuple[str, Any]]:
    for module_name in OWN_MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            found = getattr(module, name)
            yield f"{module_name}.{name}", found
            if isinstance(found, type):
                for method in dir(found):
                    if not method.startswith("_") and callable(getattr(found, method)):
                        yield f"{module_name}.{name}.{method}", getattr(found, method)


def parameters_of(function: Any) -> list[str]:
    """Those with a default end with `=`, those that take the rest begin with `*`."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        stars.get(each.kind, "") + each.name + ("=" if each.default is not inspect.Parameter.empty else "")
        for each in inspect.signature(function).parameters.values()
    ]


def missing(then: Any, now: Any) -> list[str]:
    """What was there then and is not now, as a line for each."""
    if isinstance(then, dict):
        return [
            f"{name}: {line}" if name in now else name
            for name, inner in then.items()
            for line in (missing(inner, now[name]) if name in now else [""])
        ]
    return [each for each in then if each not in now]


def with_new(then: Any, now: Any) -> Any:
    if isinstance(then, dict):
        return {name: with_new(then[name], now.get(name, then[name])) for name in then} | {
            name: inner for name, inner in now.items() if name not in then
        }
    return [*then, *(each for each in now if each not in then)]


if __name__ == "__main__":
    known = json.loads(PINNED.read_text(encoding="utf-8")) if PINNED.exists() else {}
    PINNED.write_text(json.dumps(with_new(known, surface()), indent=1) + "\n", encoding="utf-8")
