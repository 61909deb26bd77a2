"""Functions on texts. Arguments are never None."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from typing import Any


def substring(text: str, start: int, length: int | None = None) -> str:
    """Positions begin with 1; a negative one counts from the end."""
    if length is not None and length < 1:
        return ""
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    if begin >= len(text) or begin < 0:
        return ""
    return text[begin:] if length is None else text[begin : begin + length]


@functools.lru_cache(maxsize=1024)
def _like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    parts, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("%", "_", escape):
                raise ValueError(f"Invalid escape sequence '{pattern}', {at - 1}")
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        at += 1
    return re.compile("".join(parts), re.DOTALL)


def like(text: str, pattern: str, escape: str | None = None) -> bool:
    return _like_pattern(pattern, escape).fullmatch(text) is not None


TRIMS: dict[str, Callable[[str, str], str]] = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}


def _hash(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode("utf-8"), usedforsecurity=False).hexdigest()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "LIKE": like,
    "SUBSTRING": substring,
    "SUBSTR": substring,
    "UPPER": str.upper,
    "LOWER": str.lower,
    "CHAR_LENGTH": len,
    "CHARACTER_LENGTH": len,
    "REPLACE": str.replace,
    "REVERSE": lambda text: text[::-1],
    "||": lambda left, right: left + right,
    "POSITION": lambda part, text: text.find(part) + 1,
    "MD5": _hash("md5"),
    "SHA1": _hash("sha1"),
    "SHA224": _hash("sha224"),
    "SHA256": _hash("sha256"),
    "SHA384": _hash("sha384"),
    "SHA512": _hash("sha512"),
}
"""NULL if an argument is NULL, otherwise not."""
