"""Functions on texts. Arguments are never None."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import urllib.parse
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


def concat_ws(separator: str | None, *texts: str | None) -> str | None:
    """NULL only without a separator; texts that are NULL are left out."""
    return None if separator is None else separator.join([text for text in texts if text is not None])


def split_index(text: str, separator: str | int, index: int) -> str | None:
    if index < 0:
        return None
    parts = text.split(separator if isinstance(separator, str) else chr(separator)) if separator != "" else list(text)
    return parts[index] if index < len(parts) and text else None


def _padded(text: str, length: int, padding: str, at_left: bool) -> str | None:
    if length < 0 or (padding == "" and length > len(text)):
        return None
    more = max(length - len(text), 0)
    filling = (padding * (more // max(len(padding), 1) + 1))[:more]
    return filling + text if at_left and more else text[:length] + filling


def lpad(text: str, length: int, padding: str) -> str | None:
    return _padded(text, length, padding, True) if length > len(text) else _padded(text, length, padding, False)


def rpad(text: str, length: int, padding: str) -> str | None:
    return _padded(text, length, padding, False)


def initcap(text: str) -> str:
    """The first letter of each word large; whatever is no letter or digit ends a word."""
    return re.sub(r"[0-9A-Za-z]+", lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def locate(part: str, text: str, start: int = 1) -> int:
    return text.find(part, start - 1) + 1 if start > 0 else 0


def overlay(text: str, replacement: str, start: int, length: int | None = None) -> str:
    count = len(replacement) if length is None else length
    if start <= 0 or start > len(text):
        return text
    end = start - 1 + count
    if end > len(text) or count < 0:
        return text[: start - 1] + replacement
    return text[: start - 1] + replacement + text[end:]


@functools.lru_cache(maxsize=1024)
def java_regex(pattern: str) -> re.Pattern[str] | None:
    """A pattern of Java's as one of Python's; None if it is none. Named groups are written differently."""
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern))
    except re.error:
        return None


def regexp(text: str, pattern: str) -> bool | None:
    found = java_regex(pattern)
    return False if found is None else found.search(text) is not None


def regexp_replace(text: str, pattern: str, replacement: str) -> str | None:
    """The replacement is taken as it is: `$1` is no group."""
    found = java_regex(pattern)
    return None if found is None else found.sub(lambda match: replacement, text)


def regexp_extract(text: str, pattern: str, index: int = 0) -> str | None:
    found = java_regex(pattern)
    match = None if found is None else found.search(text)
    if match is None or index < 0 or index > len(match.groups()):
        return None
    return match[index]


def regexp_extract_all(text: str, pattern: str, index: int = 1) -> list[str] | None:
    found = java_regex(pattern)
    if found is None or index < 0 or index > found.groups:
        return None
    return [match[index] for match in found.finditer(text)]


def regexp_count(text: str, pattern: str) -> int | None:
    found = java_regex(pattern)
    return None if found is None else len(found.findall(text))


def regexp_instr(text: str, pattern: str) -> int | None:
    found = java_regex(pattern)
    match = None if found is None else found.search(text)
    return None if found is None else (0 if match is None else match.start() + 1)


def similar_to(text: str, pattern: str, escape: str | None = None) -> bool:
    """SIMILAR TO: a regular expression with `%` and `_`."""
    parts, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        if escape is not None and character == escape:
            at += 1
            parts.append(re.escape(pattern[at]))
        elif character in "^$.\\":
            parts.append("\\" + character)
        else:
            parts.append({"%": ".*", "_": "."}.get(character, character))
        at += 1
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def translate(text: str, source: str, target: str | None) -> str:
    target = target or ""
    table: dict[int, str | None] = {}
    for number, character in enumerate(source):
        table.setdefault(ord(character), target[number] if number < len(target) else None)
    return text.translate(table)


def from_base64(text: str) -> str | None:
    try:
        return base64.b64decode(text).decode("utf-8", "replace")
    except ValueError:
        return None


def url_decode(text: str) -> str | None:
    try:
        return urllib.parse.unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        return None


def elt(index: int, *texts: str | None) -> str | None:
    return texts[index - 1] if 1 <= index <= len(texts) else None


def is_decimal(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text) is not None


def str_to_map(text: str, entries: str = ",", pair: str = "=") -> dict[str, str | None]:
    made: dict[str, str | None] = {}
    for entry in re.split(entries, text):
        key, *value = re.split(pair, entry, maxsplit=1)
        made[key] = value[0] if value else None
    return made


def parse_url(text: str, part: str, key: str | None = None) -> str | None:
    try:
        url = urllib.parse.urlsplit(text)
        parts = {
            "HOST": url.hostname,
            "PATH": url.path,
            "QUERY": url.query or None,
            "REF": url.fragment or None,
            "PROTOCOL": url.scheme,
            "FILE": url.path + (f"?{url.query}" if url.query else ""),
            "AUTHORITY": url.netloc,
            "USERINFO": url.netloc.rpartition("@")[0] or None,
        }
    except ValueError:
        return None
    found = parts.get(part)
    if part != "QUERY" or key is None or found is None:
        return found
    match = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", found)
    return None if match is None else match[1]


def hexadecimal(value: str | int) -> str:
    if isinstance(value, int):
        return f"{value & (2**64 - 1):X}"
    return value.encode("utf-8").hex().upper()


def sha2(text: str, bits: int) -> str:
    if bits not in (224, 256, 384, 512):
        raise ValueError(f"Unsupported algorithm: SHA-{bits}")
    return hashlib.new(f"sha{bits}", text.encode("utf-8"), usedforsecurity=False).hexdigest()


def character(code: int) -> str:
    return "" if code < 0 else chr(code & 0xFF)


LENIENT: dict[str, Callable[..., Any]] = {
    "CONCAT_WS": concat_ws,
    "ELT": elt,
    "IS_DIGIT": lambda text: bool(text) and text.isdigit(),
    "IS_ALPHA": lambda text: bool(text) and text.isalpha(),
    "IS_DECIMAL": lambda text: text is not None and is_decimal(text),
}
"""They get NULLs as None."""
NULLABLE: dict[str, Callable[..., Any]] = {
    "SPLIT_INDEX": split_index,
    "LPAD": lpad,
    "RPAD": rpad,
    "REGEXP": regexp,
    "REGEXP_REPLACE": regexp_replace,
    "REGEXP_EXTRACT": regexp_extract,
    "REGEXP_EXTRACT_ALL": regexp_extract_all,
    "REGEXP_SUBSTR": regexp_extract,
    "REGEXP_COUNT": regexp_count,
    "REGEXP_INSTR": regexp_instr,
    "FROM_BASE64": from_base64,
    "URL_DECODE": url_decode,
    "PARSE_URL": parse_url,
}
"""NULL if an argument is NULL, and sometimes otherwise."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "CONCAT": lambda *texts: "".join(texts),
    "REPEAT": lambda text, count: text * max(count, 0),
    "LTRIM": lambda text, characters=" ": text.lstrip(characters),
    "RTRIM": lambda text, characters=" ": text.rstrip(characters),
    "BTRIM": lambda text, characters=" ": text.strip(characters),
    "INITCAP": initcap,
    "LEFT": lambda text, length: text[: max(length, 0)],
    "RIGHT": lambda text, length: text[-length:] if length > 0 else "",
    "INSTR": lambda text, part: text.find(part) + 1,
    "LOCATE": locate,
    "ASCII": lambda text: text.encode("utf-8")[0] if text else 0,
    "CHR": character,
    "OVERLAY": overlay,
    "SIMILAR TO": similar_to,
    "NOT LIKE": lambda *arguments: not like(*arguments),
    "NOT SIMILAR TO": lambda *arguments: not similar_to(*arguments),
    "TO_BASE64": lambda text: base64.b64encode(text.encode("utf-8")).decode("ascii"),
    "URL_ENCODE": lambda text: urllib.parse.quote_plus(text, safe="*-._"),
    "TRANSLATE": translate,
    "TRANSLATE3": translate,
    "STARTSWITH": lambda text, part: text.startswith(part),
    "ENDSWITH": lambda text, part: text.endswith(part),
    "SHA2": sha2,
    "STR_TO_MAP": str_to_map,
    "HEX": hexadecimal,
    "BIN": lambda number: f"{number & (2**64 - 1):b}",
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
