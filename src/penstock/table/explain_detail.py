"""What EXPLAIN shows in addition."""

from __future__ import annotations


class ExplainDetail:
    """What EXPLAIN shows in addition.

    >>> ExplainDetail.CHANGELOG_MODE
    1
    """

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3


NAMES = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
"""The details as Flink calls them, by their numbers."""
