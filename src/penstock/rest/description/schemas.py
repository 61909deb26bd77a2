"""JSON Schema from a short notation, in which a document's shape reads like the document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
Shape = Any
"""A type, a list of one shape, a dictionary of shapes (with exactly these keys), or one of the classes below."""

_TYPES: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True)
class Maybe:
    """The shape, or null."""

    shape: Shape


@dataclass(frozen=True)
class MapOf:
    """Any keys, all with values of the shape."""

    shape: Shape


@dataclass(frozen=True)
class OneOf:
    """One of these words."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class With:
    """A dictionary that may have more keys."""

    fields: dict[str, Shape]
    optional: dict[str, Shape]


class Anything:
    """No rule."""


def schema_of(shape: Shape) -> Schema:
    match shape:
        case type() if shape in _TYPES:
            return {"type": _TYPES[shape]}
        case list():
            return {"type": "array", "items": schema_of(shape[0])}
        case dict():
            return _object(shape, {})
        case With(fields, optional):
            return _object(fields, optional)
        case Maybe(inner):
            return {"anyOf": [schema_of(inner), {"type": "null"}]}
        case MapOf(inner):
            return {"type": "object", "additionalProperties": schema_of(inner)}
        case OneOf(words):
            return {"type": "string", "enum": list(words)}
    return {}


def _object(fields: dict[str, Shape], optional: dict[str, Shape]) -> Schema:
    return {
        "type": "object",
        "properties": {name: schema_of(shape) for name, shape in {**fields, **optional}.items()},
        "required": list(fields),
        "additionalProperties": False,
    }
