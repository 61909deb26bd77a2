"""The page of the REST API, from the descriptions that also make `/openapi.json`."""

from __future__ import annotations

from itertools import groupby

from penstock.rest.description.openapi import DESCRIBED, Described

_OPENING = """# REST API

Flink's REST API, as far as Penstock has it, served by every process that runs jobs and by job managers. All paths may
have `/v1` before them. Over TCP every request needs the token: `Authorization: Bearer <token>`
([Security](../security.md)). Errors are `{"errors": [...]}`.

What takes time is begun by a POST, which answers 202 with a `request-id`; a GET with that id answers `IN_PROGRESS` or
`COMPLETED`, and the result. `GET /openapi.json` describes all of it for tools, with the shapes of bodies and answers.
[Running jobs](../operations.md#rest-api) has examples with curl.
"""


def page() -> str:
    """A table for each part of the API: method, path, parameters, what it does."""
    parts = [_OPENING]
    by_part = sorted(DESCRIBED.items(), key=lambda item: _part_of(item[0]))
    for part, operations in groupby(by_part, key=lambda item: _part_of(item[0])):
        rows = "".join(f"\n{_row(name, described)}" for name, described in operations)
        parts.append(f"## {part}\n\n| Request | Answers | Query |\n|---|---|---|{rows}\n")
    return "\n".join(parts)


def _part_of(operation: str) -> str:
    path = operation.split(" ")[1]
    for prefix, part in (
        ("/jobs/{job}/vertices", "Vertices and subtasks"),
        ("/jobs/{job}/checkpoints", "Checkpoints"),
        ("/jobs/{job}/savepoints", "Savepoints"),
        ("/jobs/{job}/stop", "Savepoints"),
        ("/savepoint", "Savepoints"),
        ("/jobs", "Jobs"),
        ("/blobs", "Files"),
    ):
        if path.startswith(prefix):
            return part
    return "Cluster"


def _row(operation: str, described: Described) -> str:
    query = "<br>".join(f"`{name}`: {meaning}" for name, meaning in described.query.items())
    status = "" if described.status == 200 else f" ({described.status})"
    return f"| `{operation}` | {described.summary}{status} | {query} |"
