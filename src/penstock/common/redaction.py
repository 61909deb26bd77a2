"""Hides secrets in what is shown: settings, messages, logs and the representations of objects.

It errs on the side of hiding: a setting whose name sounds like a secret is hidden, whatever it holds.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "******"

# Parts of names, without the dots, dashes and underscores that people put between words.
_WORDS = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "apikey", "accesskey",
    "accountkey", "sharedkey", "storagekey", "privatekey", "servicekey", "masterkey", "encryptionkey", "signingkey",
    "sslkey", "keypem", "keystorekey", "authparams", "basicauth", "userinfo", "jaas", "authorization", "cookie",
    "connectionstring", "signature", "saskey",
)  # fmt: skip
_BETWEEN = r"[._\-\s]?"
_SECRET = re.compile("|".join(_BETWEEN.join(word) for word in _WORDS), re.IGNORECASE)

# Each begins where a name begins and takes all of it, so that long texts take no longer than their length.
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_NAME_OF_PARAMETER = re.compile(r"(?<![\w.\-])([\w.\-]+)[\"']?\s*=(?!=)\s*")
_PARAMETER = re.compile(rf"{_QUOTED}|[^\s,;&\"'<>)}}\]]+")
"""`password=x`, `;AccountKey=x`, `&token=x`, `password = "x y"`"""
_NAME_OF_ENTRY = re.compile(r"(?<=[\"'])([\w.\-]+)[\"']\s*:\s*[bru]?")
_ENTRY = re.compile(rf"{_QUOTED}|[^\s,\"'}}\]]+")
"""`"password": "x"`, as in JSON and in Python's dictionaries"""
_ENTRY_OF_MAP = re.compile(r"(?:'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^,'\"]|['\"])+")
_NAME_IN_MAP = re.compile(r"[\s\"']*([\w.\-]+)\s*:(?!//)")
"""`db.password:x,url:'http://host'`, the form of settings that are maps. In messages, words often follow a colon."""
_HEADER = re.compile(
    r"\b((?:proxy-)?authorization|(?:set-)?cookie|x-[\w\-]{0,60}(?:key|token))(\s*:\s*)[^\r\n]+", re.IGNORECASE
)
_SCHEME_OF_AUTHORIZATION = re.compile(r"\b(bearer|basic)(\s+)[\w.~+/\-]{8,}=*", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"(//[^\s/?#@:\"']*:)[^\s/?#\"']+@")
_USER_OF_WEB_SITE = re.compile(r"(\bhttps?://)[^\s/?#@:\"']+@", re.IGNORECASE)
"""On web sites, a user name without a password is usually a token."""
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def is_secret(name: str) -> bool:
    """True for the name of a setting, a parameter or a header whose value must not be shown."""
    return _SECRET.search(name) is not None


def redacted_text(text: str) -> str:
    """A text without passwords in URLs, values of parameters named like secrets, tokens in headers, private keys."""
    text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}\2", text)
    text = _PASSWORD_IN_URL.sub(rf"\1{HIDDEN}@", text)
    text = _USER_OF_WEB_SITE.sub(rf"\1{HIDDEN}@", text)
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _SCHEME_OF_AUTHORIZATION.sub(rf"\1\2{HIDDEN}", text)
    text = _without_values(text, _NAME_OF_ENTRY, _ENTRY)
    return _without_values(text, _NAME_OF_PARAMETER, _PARAMETER)


def _without_values(text: str, names: re.Pattern[str], values: re.Pattern[str]) -> str:
    """Hide what follows a name that suggests a secret. What follows another name is searched as well."""
    parts, end = [], 0
    for name in names.finditer(text):
        value = values.match(text, name.end()) if name.start() >= end and is_secret(name[1]) else None
        if value is not None:
            parts += [text[end : name.end()], HIDDEN]
            end = value.end()
    return "".join([*parts, text[end:]])


def redacted_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings in a form that may be shown: secret ones are hidden, and so are secrets within the others."""
    return {key: HIDDEN if is_secret(key) else _redacted_value(str(value)) for key, value in settings.items()}


def _redacted_value(text: str) -> str:
    return redacted_text(_ENTRY_OF_MAP.sub(_redacted_entry, text))


def _redacted_entry(entry: re.Match[str]) -> str:
    name = _NAME_IN_MAP.match(entry[0])
    return entry[0] if name is None or not is_secret(name[1]) else f"{name[1]}:{HIDDEN}"


def redacted_repr(value: Any) -> str:
    """The representation of a dataclass without its secrets; to be assigned to `__repr__`."""
    shown = (
        f"{each.name}={_shown(each.name, getattr(value, each.name))}" for each in dataclasses.fields(value) if each.repr
    )
    return f"{type(value).__qualname__}({', '.join(shown)})"


def _shown(name: str, value: Any) -> str:
    if is_secret(name) and value is not None:
        return HIDDEN
    if isinstance(value, Mapping):
        return repr(redacted_settings(value))
    return redacted_text(repr(value))


class RedactingFormatter(logging.Formatter):
    """Writes log lines without secrets, also in the stacks of exceptions."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted_text(super().format(record))
