"""Records what Flink makes of the Nexmark queries: `python record_nexmark.py results.json`, where apache-flink is."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "shared")]

from benchmarks.nexmark_sql.events import write_events  # noqa: E402
from benchmarks.nexmark_sql.queries import DEPENDS_ON_THE_CLOCK, NEEDED, QUERIES, UPSERTS, statements  # noqa: E402
from nexmark_results import EVENTS, STEP_MS, rows_left, summary  # noqa: E402
from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: E402


def recorded(folder: Path, name: str) -> dict[str, Any]:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    for statement in [*statements(folder), *NEEDED.get(name, [])]:
        t_env.execute_sql(statement)
    with t_env.execute_sql(QUERIES[name]).collect() as rows:
        return summary(rows_left(((str(row.get_row_kind()), row) for row in rows), UPSERTS.get(name)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_events(Path(folder), EVENTS, STEP_MS)
        found = {name: recorded(Path(folder), name) for name in QUERIES if name not in DEPENDS_ON_THE_CLOCK}
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
