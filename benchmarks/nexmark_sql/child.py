"""Runs queries into a table that keeps nothing, on Penstock or, with BENCH_PACKAGE=pyflink, on PyFlink."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.flink_api import PACKAGE
from benchmarks.job import RESULT_MARK
from benchmarks.nexmark_sql.queries import NEEDED, QUERIES, statements


def table_environment(parallelism: int, config: dict[str, str]) -> Any:
    if PACKAGE == "pyflink":
        from pyflink.table import EnvironmentSettings, TableEnvironment
    else:
        from penstock.table import EnvironmentSettings, TableEnvironment  # type: ignore[assignment]
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"parallelism.default": str(parallelism), **config}.items():
        t_env.get_config().set(key, value)
    return t_env


def prepare(t_env: Any, name: str, folder: Path) -> None:
    """The tables over this folder, and a sink with the columns of the query."""
    for table in ("events", "side_input"):
        t_env.execute_sql(f"DROP TABLE IF EXISTS {table}")
    for view in ("person", "auction", "bid", "timed_bid"):
        t_env.execute_sql(f"DROP TEMPORARY VIEW IF EXISTS {view}")
    t_env.execute_sql("DROP TABLE IF EXISTS kept_nowhere")
    for statement in [*statements(folder), *NEEDED.get(name, [])]:
        t_env.execute_sql(statement)
    t_env.execute_sql(f"CREATE TEMPORARY VIEW result_of_{name} AS {QUERIES[name]}")
    described = t_env.execute_sql(f"DESCRIBE result_of_{name}")
    with described.collect() as rows:
        columns = ", ".join(f"`{row[0]}` {_plain(row[1])}" for row in rows)
    t_env.execute_sql(f"DROP TEMPORARY VIEW result_of_{name}")
    t_env.execute_sql(f"CREATE TABLE kept_nowhere ({columns}) WITH ('connector' = 'blackhole')")


def _plain(data_type: str) -> str:
    """A type as DDL has it, without the mark of a time attribute."""
    return data_type.replace(" *ROWTIME*", "").replace(" *PROCTIME*", "")


def seconds(t_env: Any, name: str, folder: Path) -> float:
    """What one run takes, from the statement to the end of the job."""
    prepare(t_env, name, folder)
    started = time.perf_counter()
    t_env.execute_sql(f"INSERT INTO kept_nowhere {QUERIES[name]}").wait()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("small", type=Path, help="a folder with few events, for what a job costs by itself")
    parser.add_argument("large", type=Path)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    t_env = table_environment(given.parallelism, dict(pair.split("=", 1) for pair in given.config))
    seconds(t_env, given.names[0], given.large)  # Warms up.
    for name in given.names:
        fixed = min(seconds(t_env, name, given.small) for _ in range(3))
        print(RESULT_MARK + json.dumps([name, fixed, seconds(t_env, name, given.large)]), flush=True)


if __name__ == "__main__":
    main()
