"""Rows that functions emit have the names of their declared type."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Row, Types
from penstock.common.exceptions import JobExecutionError

NAMED = Types.ROW_NAMED(["n", "s"], [Types.INT(), Types.STRING()])


def test_names_reach_the_next_function_through_chains_and_exchanges(run_target: Any) -> None:
    rows = run_target().from_collection([1, 2]).map(lambda n: Row(n, "x" * n), NAMED)
    assert list(rows.map(lambda row: (row.n, row.s)).execute_and_collect()) == [(1, "x"), (2, "xx")]
    rows = run_target(2).from_collection([1, 2]).map(lambda n: (n, "x" * n), NAMED)
    keyed = rows.key_by(lambda row: row.s).map(lambda row: row["n"])
    assert sorted(keyed.execute_and_collect()) == [1, 2]


def test_rows_without_declared_names_have_flinks(run_target: Any) -> None:
    rows = run_target().from_collection([1]).map(lambda n: Row(n), Types.ROW([Types.INT()]))
    assert list(rows.map(lambda row: row.f0).execute_and_collect()) == [1]


def test_a_row_made_with_names_takes_the_declared_order(run_target: Any) -> None:
    rows = run_target().from_collection([1]).map(lambda n: Row(s="a", n=n), NAMED)
    assert [tuple(row) for row in rows.execute_and_collect()] == [(1, "a")]


def test_a_wrong_number_of_fields_says_what_was_declared(run_target: Any) -> None:
    rows = run_target().from_collection([1]).map(lambda n: (n, "a", "b"), NAMED)
    with pytest.raises(JobExecutionError, match=r"\(1, 'a', 'b'\) has 3 fields, but .* was declared with 2"):
        list(rows.execute_and_collect())


class ByIdentity:
    pass


def test_objects_that_compare_by_identity_are_refused_as_keys(run_target: Any) -> None:
    for parallelism in (1, 2):
        keyed = run_target(parallelism).from_collection([1]).map(lambda _: ByIdentity()).key_by(lambda each: each)
        with pytest.raises(JobExecutionError, match="a ByIdentity cannot be a key: it compares by identity"):
            list(keyed.map(lambda each: 1).execute_and_collect())


def test_sys_exit_in_a_function_is_its_failure(run_target: Any) -> None:
    import sys

    with pytest.raises(JobExecutionError, match="operator 'Map', subtask 1/1, at record 1: SystemExit: 3"):
        list(run_target().from_collection([1]).map(lambda _: sys.exit(3)).execute_and_collect())
