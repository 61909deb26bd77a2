"""Types from JSON Schema, as Flink derives them."""

from __future__ import annotations

import json
from typing import Any

from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types

_STRING_FORMATS = {"date-time": Types.SQL_TIMESTAMP(), "date": Types.SQL_DATE(), "time": Types.SQL_TIME()}


def type_of_json_schema(json_schema: str) -> RowTypeInfo:
    """The row type that a JSON Schema describes. Numbers become BIG_DEC; `$ref` may point into the same document."""
    try:
        root = json.loads(json_schema)
    except ValueError as exc:
        raise ValueError(f"json_schema: not JSON: {exc}") from exc
    converted = _convert(root, root, "<root>")
    if not isinstance(converted, RowTypeInfo):
        raise ValueError("json_schema: the outermost type must be an object with properties")
    return converted


def _convert(root: Any, node: Any, where: str) -> TypeInformation:
    if isinstance(node, dict) and "$ref" in node:
        return _convert(root, _resolve(root, node["$ref"], where), where)
    match _type_name(node, where):
        case "object":
            properties = node.get("properties", {})
            types = [_convert(root, inner, f"{where}.{name}") for name, inner in properties.items()]
            return Types.ROW_NAMED(list(properties), types)
        case "array":
            return _array(root, node, where)
        case "string":
            return _string(node, where)
        case "number" | "integer":
            return Types.BIG_DEC()
        case "boolean":
            return Types.BOOLEAN()
        case "null":
            return Types.PICKLED_BYTE_ARRAY()
        case other:
            raise ValueError(f"json_schema: {where} has the unknown type {other!r}")


def _type_name(node: Any, where: str) -> str:
    if not isinstance(node, dict) or "type" not in node:
        raise ValueError(f"json_schema: {where} has no 'type'; oneOf, anyOf and allOf are not supported")
    names = node["type"] if isinstance(node["type"], list) else [node["type"]]
    if len(names) > 1:
        names = [name for name in names if name != "null"]
    if len(names) != 1:
        raise ValueError(f"json_schema: {where} may be {' or '.join(names)}; only one type besides null is supported")
    return str(names[0])


def _array(root: Any, node: dict[str, Any], where: str) -> TypeInformation:
    items = node.get("items")
    if isinstance(items, list):
        return Types.ROW([_convert(root, item, f"{where}[{position}]") for position, item in enumerate(items)])
    if items is None:
        raise ValueError(f"json_schema: array {where} has no 'items'")
    element = _convert(root, items, f"{where}[]")
    return Types.BASIC_ARRAY(element) if element == Types.STRING() else Types.OBJECT_ARRAY(element)


def _string(node: dict[str, Any], where: str) -> TypeInformation:
    if "contentEncoding" in node:
        if node["contentEncoding"] != "base64":
            raise ValueError(f"json_schema: {where} has encoding {node['contentEncoding']!r}; only base64 is supported")
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    return _STRING_FORMATS.get(node.get("format", ""), Types.STRING())


def _resolve(root: Any, reference: str, where: str) -> Any:
    node = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if not reference.startswith("#") or not isinstance(node, dict) or step not in node:
            raise ValueError(f"json_schema: {where} refers to {reference!r}, which is not in the same document")
        node = node[step]
    return node
