"""SQL's functions on JSON texts, and the paths that they take: `$.a.b[0]`, `$['a']`, `lax $.a[*]`."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.types import DataType, RowType

_STEP = re.compile(r"\.([A-Za-z_][\w$-]*)|\[\s*'([^']*)'\s*\]|\[\s*\"([^\"]*)\"\s*\]|\[\s*(\d+|\*)\s*\]|\.(\*)")


class MissingPathError(LookupError):
    """The path leads to nothing."""


@functools.lru_cache(maxsize=512)
def steps_of(path: str) -> tuple[bool, tuple[str | int, ...]]:
    """Whether the path is strict, as it is unless it says `lax`, and its steps; `*` for all.

    In a strict path it is an error if a step leads to nothing; else the result is empty.
    """
    text = path.strip()
    mode = re.match(r"(lax|strict)\s+", text)
    if mode:
        text = text[mode.end() :]
    if not text.startswith("$"):
        raise UnsupportedFeatureError(f"the JSON path {path!r} is not supported")
    at, found = 1, []
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise UnsupportedFeatureError(f"the JSON path {path!r} is not supported")
        name = next(part for part in step.groups() if part is not None)
        found.append(int(name) if step[4] is not None and name != "*" else name)
        at = step.end()
    return mode is None or mode[1] == "strict", tuple(found)


def follow(document: Any, path: str) -> Any:
    """What the path leads to; a list for paths with `*`."""
    _, steps = steps_of(path)
    if "*" not in steps:
        return _follow(document, steps)
    return _all(document, steps)


def _follow(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                raise MissingPathError(step)
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                raise MissingPathError(step)
            value = value[step]
    return value


def _all(value: Any, steps: tuple[str | int, ...]) -> list[Any]:
    if not steps:
        return [value]
    step, rest = steps[0], steps[1:]
    if step == "*":
        inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
        return [found for each in inner for found in _all(each, rest)]
    try:
        return _all(_follow(value, (step,)), rest)
    except MissingPathError:
        return []


def parsed(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def scalar_text(value: Any) -> str:
    """A scalar as JSON_VALUE gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float)


def is_json(text: str, kind: str = "VALUE") -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    match kind:
        case "OBJECT":
            return isinstance(value, dict)
        case "ARRAY":
            return isinstance(value, list)
        case "SCALAR":
            return not isinstance(value, (dict, list))
    return True


def json_exists(text: str, path: str) -> bool:
    try:
        found = follow(parsed(text), path)
    except (ValueError, MissingPathError):
        return False
    return bool(found) if "*" in steps_of(path)[1] else True


def json_value(convert: Callable[[str], Any] | None, on_empty: str, on_error: str) -> Callable[..., Any]:
    """A function of a text, a path, and what to give for nothing and for an error."""

    def value(text: str, path: str, empty: Any, error: Any) -> Any:
        try:
            found = follow(parsed(text), path)
        except (MissingPathError, ValueError) as failure:
            if not isinstance(failure, MissingPathError) or steps_of(path)[0]:
                if on_error == "ERROR":
                    raise ValueError(f"JSON_VALUE: {path!r} cannot be followed in {text!r}") from failure
                return error
            found = None
        if found is None:
            if on_empty == "ERROR":
                raise ValueError(f"JSON_VALUE: the path {path!r} leads to nothing in {text!r}")
            return empty
        if isinstance(found, (dict, list)):
            if on_error == "ERROR":
                raise ValueError(f"JSON_VALUE: the path {path!r} leads to no scalar in {text!r}")
            return error
        plain = scalar_text(found)
        return plain if convert is None else convert(plain)

    return value


def json_query(wrapper: str, on_empty: str, on_error: str) -> Callable[[str, str], str | None]:
    """Objects and arrays; scalars only with a wrapper, which makes arrays of them."""
    instead = {"NULL": None, "EMPTY_ARRAY": "[]", "EMPTY_OBJECT": "{}"}

    def failed(behavior: str, what: str) -> str | None:
        if behavior == "ERROR":
            raise ValueError(f"JSON_QUERY: {what}")
        return instead.get(behavior)

    def query(text: str, path: str) -> str | None:
        try:
            found = follow(parsed(text), path)
        except MissingPathError:
            return failed(
                on_error if steps_of(path)[0] else on_empty, f"the path {path!r} leads to nothing in {text!r}"
            )
        except ValueError:
            return failed(on_error, f"{text!r} is not JSON")
        is_scalar = not isinstance(found, (dict, list))
        if wrapper == "WITH_UNCONDITIONAL_ARRAY" or (wrapper == "WITH_CONDITIONAL_ARRAY" and is_scalar):
            return compact([found])
        if is_scalar:
            return failed(on_error, f"the path {path!r} leads to a scalar in {text!r}")
        return compact(found)

    return query


def json_writer(data_type: DataType) -> Callable[[Any], str]:
    """The JSON text of a value of a type."""
    from penstock.table.connectors.formats.json import JsonEncoder
    from penstock.table.connectors.options import Options

    return JsonEncoder(RowType([]), Options({}, "JSON_STRING"), "UTC").writer(data_type)


def json_object(keys: list[str], values: list[str | None]) -> str:
    pairs = [
        f"{compact(key)}:{value if value is not None else 'null'}" for key, value in zip(keys, values, strict=True)
    ]
    return "{" + ",".join(pairs) + "}"


def json_object_present(keys: list[str], values: list[str | None]) -> str:
    present = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
    return json_object([key for key, _ in present], [value for _, value in present])


def json_array(values: list[str | None]) -> str:
    return "[" + ",".join([value if value is not None else "null" for value in values]) + "]"


def json_array_present(values: list[str | None]) -> str:
    return json_array([value for value in values if value is not None])
