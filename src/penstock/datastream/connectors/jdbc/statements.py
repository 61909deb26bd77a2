"""JDBC's statements in the form of Python's clients, and its URLs in that of PostgreSQL's."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.common.redaction import redacted_text

# Where a `?` does not stand for a value: quoted text and names, dollar quotes, comments; `??` is JDBC's form of `?`.
_TOKENS = re.compile(
    r"""(?P<skipped>
        [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
        | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$
        | --[^\n]* | /\*.*?\*/
      )
      | (?P<operator>\?\?) | (?P<place>\?) | (?P<percent>%)""",
    re.VERBOSE | re.DOTALL,
)

_SCHEME = "jdbc:postgresql:"
_PARAMETERS = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
}
# Settings of Java's driver that change how fast it is, not what it does.
_WITHOUT_EFFECT = {
    "reWriteBatchedInserts",
    "prepareThreshold",
    "preparedStatementCacheQueries",
    "defaultRowFetchSize",
    "stringtype",
    "tcpKeepAlive",
    "binaryTransfer",
}


@dataclass(frozen=True)
class Statement:
    """A statement with a place for each field of a row."""

    text: str
    """With `%s` for each place."""
    places: int
    sql: str
    """As it was written, with `?`."""

    @staticmethod
    def of(sql: str) -> Statement:
        """From a statement with `?`; those in quoted text and comments do not count."""
        places = sum(1 for token in _TOKENS.finditer(sql) if token["place"])
        return Statement(_TOKENS.sub(_translated, sql), places, sql)

    def in_style(self, style: str) -> str:
        """The statement with its places marked in a style of the DB-API: qmark, format, pyformat or numeric."""
        if style in ("format", "pyformat"):
            return self.text
        numbers = itertools.count(1)

        def marked(token: re.Match[str]) -> str:
            if token["place"] is None:
                return "?" if token["operator"] is not None else token[0]
            return "?" if style == "qmark" else f":{next(numbers)}"

        return _TOKENS.sub(marked, self.sql)


def _translated(token: re.Match[str]) -> str:
    if token["skipped"] is not None:
        return token["skipped"].replace("%", "%%")
    if token["operator"] is not None:
        return "?"
    return "%s" if token["place"] is not None else "%%"


def connection_settings(url: str, user: str | None, password: str | None) -> dict[str, Any]:
    """What psycopg's `connect` takes, for a URL of JDBC."""
    rest = url.removeprefix(_SCHEME)
    parts = urlsplit(rest if rest.startswith("//") else f"///{rest}")
    settings: dict[str, Any] = dict(_parameters(url, dict(parse_qsl(parts.query, keep_blank_values=True))))
    hosts = [_host_and_port(each) for each in parts.netloc.split(",") if each]
    if hosts:
        settings["host"] = ",".join(host for host, _ in hosts)
        settings["port"] = ",".join(port for _, port in hosts)
    database = unquote(parts.path.lstrip("/"))
    if database:
        settings["dbname"] = database
    if user is not None:
        settings["user"] = user
    if password is not None:
        settings["password"] = password
    return settings


def _host_and_port(address: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\[[^\]]+\]|[^:]+)(?::(\d+))?", address)
    if match is None:
        raise ValueError(f"JdbcSink: {address.rpartition('@')[2]!r} in the URL is not a host and port")
    return match[1].strip("[]"), match[2] or "5432"


def _parameters(url: str, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name in ("currentSchema", "options"):
            continue
        if name == "ssl":
            if value.lower() != "false" and "sslmode" not in given:
                yield "sslmode", "verify-full"
        elif name in _PARAMETERS:
            yield _PARAMETERS[name], value
        elif name not in _WITHOUT_EFFECT:
            known = ", ".join(sorted({*_PARAMETERS, *_WITHOUT_EFFECT, "currentSchema", "options", "ssl"}))
            shown = redacted_text(url.partition("?")[0])
            raise ValueError(f"JdbcSink: the parameter {name!r} of {shown!r} is not one of {known}")
    # Both become options of the server. As with Java's driver, the schema wins if the options name one, too.
    schema = given.get("currentSchema")
    options = [given.get("options"), None if schema is None else f"-c search_path={_escaped(schema)}"]
    if any(options):
        yield "options", " ".join(filter(None, options))


def _escaped(value: str) -> str:
    """Escaped to be one word of libpq's options."""
    return re.sub(r"([\\\s])", r"\\\1", value)
