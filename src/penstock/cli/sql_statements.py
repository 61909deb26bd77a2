"""Takes the text of a SQL script apart: where its statements end."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""--[^\n]*            # a comment to the end of the line
      | /\*.*?(?:\*/|\Z)   # a comment of any length
      | '(?:[^']|'')*(?:'|\Z)
      | `(?:[^`]|``)*(?:`|\Z)
      | ;
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = re.compile(r"\s*(?:--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))", re.DOTALL)
_SET_BEGINS = re.compile(r"(?:BEGIN\s+STATEMENT\s+SET|EXECUTE\s+STATEMENT\s+SET\s+BEGIN)\b\s*", re.IGNORECASE)


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements that end with a semicolon, without it, and the text after the last one.

    >>> split_statements("SELECT ';' -- one; two\\n; SHOW TABLES; SEL")
    (["SELECT ';' -- one; two", 'SHOW TABLES'], ' SEL')
    """
    statements, begin = [], 0
    for token in _TOKEN.finditer(text):
        if token.group() == ";":
            statements.append(text[begin : token.start()].strip())
            begin = token.end()
    return [statement for statement in statements if without_comments(statement)], text[begin:]


def without_comments(statement: str) -> str:
    """The statement without white space and comments before it; empty if there is nothing else.

    >>> without_comments("-- tables\\n/* all */ SHOW TABLES")
    'SHOW TABLES'
    """
    while (comment := _COMMENTS.match(statement)) is not None:
        statement = statement[comment.end() :]
    return statement.strip()


def begins_statement_set(statement: str) -> tuple[bool, str]:
    """Whether a statement begins a statement set, and what follows in it.

    >>> begins_statement_set("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1")
    (True, 'INSERT INTO a SELECT 1')
    """
    text = without_comments(statement)
    found = _SET_BEGINS.match(text)
    return (False, text) if found is None else (True, text[found.end() :])
