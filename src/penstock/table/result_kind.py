"""What kind of result a statement has."""

from __future__ import annotations


class ResultKind:
    """Whether a statement only succeeded, or also has rows.

    >>> ResultKind.SUCCESS
    0
    """

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
