"""Configuration values as text: how each type is written into a file and read back.

Lists and maps use Flink's forms: `a;b;c` and `k1:v1,k2:v2`, with parts in quotes where they contain a separator.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.common.time import parse_duration_ms

__all__ = ["parse_as", "to_text"]


def to_text(value: object) -> str:
    """The text form of a value, as it would stand in a configuration file."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return ",".join(
                _quoted(f"{_quoted(to_text(k), ':')}:{_quoted(to_text(v), ':')}", ",") for k, v in value.items()
            )
        case Sequence():
            return ";".join(_quoted(to_text(item), ";") for item in value)
    return str(value)


def parse_as(value_type: str, value: object) -> Any:
    """Read `value` (text, or already typed) as one of the types of `PARSERS`; ValueError says what the type takes."""
    return PARSERS[value_type](value)


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    match to_text(value).strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("write true or false")


def _whole_number(bits: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        try:
            number = int(to_text(value).strip())
        except ValueError:
            raise ValueError("write a whole number") from None
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError(f"write a whole number that fits into {bits} bits")
        return number

    return parse


def _float(value: object) -> float:
    try:
        return float(to_text(value).strip())
    except ValueError:
        raise ValueError("write a number") from None


def _duration(value: object) -> int:
    return parse_duration_ms(value)  # type: ignore[arg-type]


def _bytes(value: object) -> bytearray:
    if isinstance(value, (bytes, bytearray)):
        return bytearray(value)
    try:
        return bytearray(base64.b64decode(to_text(value), validate=True))
    except ValueError:
        raise ValueError("write bytes in base64, or set them with set_bytearray") from None


def _list(value: object) -> list[str]:
    if isinstance(value, (list, tuple)):
        return [to_text(item) for item in value]
    text = to_text(value).strip()
    if text.startswith("[") and text.endswith("]"):  # the flow form of YAML
        return [_unquoted(part) for part in _split(text[1:-1], ",") if part]
    if text.startswith("- "):  # the block form
        return [_unquoted(line.strip().removeprefix("-").strip()) for line in text.splitlines() if line.strip()]
    return [_unquoted(part) for part in _split(text, ";") if part]


def _map(value: object) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {to_text(key): to_text(item) for key, item in value.items()}
    entries: dict[str, str] = {}
    text = to_text(value).strip()
    if text.startswith("{") and text.endswith("}"):  # the flow form of YAML
        text = text[1:-1]
    for part in _split(text, ","):
        if not part:
            continue
        pair = _split(_unquoted(part), ":")
        if len(pair) < 2:
            raise ValueError(f"write key1:value1,key2:value2 ({part!r} has no colon)")
        # Only the first colon separates. Flink wants quotes around further ones, but nothing is ambiguous without them.
        entries[_unquoted(pair[0])] = _unquoted(pair[1]) if len(pair) == 2 else ":".join(pair[1:])
    return entries


PARSERS: dict[str, Callable[[object], Any]] = {
    "string": to_text,
    "boolean": _boolean,
    "int": _whole_number(32),
    "long": _whole_number(64),
    "float": _float,
    "double": _float,
    "duration": _duration,
    "bytes": _bytes,
    "list": _list,
    "map": _map,
}


def _quoted(text: str, separator: str) -> str:
    needs_quotes = not text or separator in text or text != text.strip() or text[0] in "'\"["
    return "'" + text.replace("'", "''") + "'" if needs_quotes else text


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators, stripped; a part that begins with a quote reaches to the quote that closes it."""
    part = re.compile(rf"""\s*(?:'(?:[^']|\'\')*'|"(?:[^"]|"")*")?[^{separator}]*""")
    parts, position = [], 0
    while position <= len(text):
        match = part.match(text, position)
        assert match is not None  # the pattern matches the empty text
        parts.append(match[0].strip())
        position = match.end() + 1
    return parts
