"""Whether data of one Avro schema can be read as another one, and if not, which field is in the way."""

from __future__ import annotations

from typing import Any

# Avro's rules for numbers and strings that become others without loss.
_PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def mismatch(written: Any, wanted: Any, field: str = "") -> str | None:
    """What is wrong, with the name of the field; None if data of the first schema can be read as the second.

    Both are expanded schemas, in which a name stands for a record that holds itself.

    >>> mismatch("string", "int", "age")
    "field 'age' is written as string and cannot be read as int"
    """
    if isinstance(written, list) or isinstance(wanted, list):
        return _union_mismatch(written, wanted, field)
    kind, wanted_kind = _kind(written), _kind(wanted)
    if wanted_kind != kind:
        is_name = (not isinstance(written, dict) and kind not in _PRIMITIVES) or wanted_kind not in _KINDS
        fits = is_name or wanted_kind in _PROMOTIONS.get(kind, ())
        return None if fits else _mismatch(field, kind, wanted_kind)
    match kind:
        case "record":
            return _record_mismatch(written, wanted, field)
        case "array":
            return mismatch(written["items"], wanted["items"], field)
        case "map":
            return mismatch(written["values"], wanted["values"], field)
        case "fixed" if written["size"] != wanted["size"]:
            return _mismatch(field, f"fixed of {written['size']} bytes", f"fixed of {wanted['size']}")
    return _decimal_mismatch(written, wanted, field)


_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_KINDS = _PRIMITIVES | {"record", "enum", "array", "map", "fixed", "error"}


def _kind(schema: Any) -> str:
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def _record_mismatch(written: Any, wanted: Any, field: str) -> str | None:
    there = {each["name"]: each["type"] for each in written["fields"]}
    for each in wanted["fields"]:
        name = f"{field}.{each['name']}" if field else each["name"]
        known_as = [alias for alias in (each["name"], *each.get("aliases", ())) if alias in there]
        if known_as:
            found = mismatch(there[known_as[0]], each["type"], name)
        elif "default" in each:
            found = None
        else:
            found = f"field {name!r} is missing, and the schema has no default for it"
        if found is not None:
            return found
    return None


def _union_mismatch(written: Any, wanted: Any, field: str) -> str | None:
    """A value is read as any branch that takes it; it is a mismatch only if no branch takes any value."""
    branches = written if isinstance(written, list) else [written]
    targets = wanted if isinstance(wanted, list) else [wanted]
    found = [mismatch(branch, target, field) for branch in branches for target in targets]
    if not found or any(each is None for each in found):
        return None
    if len(found) == 1:
        return found[0]
    return _mismatch(field, _listed(branches), _listed(targets))


def _decimal_mismatch(written: Any, wanted: Any, field: str) -> str | None:
    scales = [
        each.get("scale", 0) if isinstance(each, dict) and each.get("logicalType") == "decimal" else None
        for each in (written, wanted)
    ]
    if None in scales or scales[0] == scales[1]:
        return None
    return _mismatch(field, f"decimal of scale {scales[0]}", f"one of scale {scales[1]}")


def _listed(branches: list[Any]) -> str:
    return " or ".join(map(_kind, branches))


def _mismatch(field: str, kind: str, wanted: str) -> str:
    where = f"field {field!r}" if field else "the element"
    return f"{where} is written as {kind} and cannot be read as {wanted}"
