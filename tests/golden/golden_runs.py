"""Runs the golden job in this process: up to a savepoint or checkpoint, or from one to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from golden_job import build

from penstock.common import Configuration, JobID
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster

EPOCHS = {"penstock.epoch.max-records": "10", "penstock.epoch.interval": "1 ms"}


class ActsAt(InlineExecutor):
    """Does something while an epoch runs: the next one finds it done."""

    def __init__(self, epoch: int, action: Callable[[], object]) -> None:
        super().__init__()
        self._epoch = epoch
        self._action = action

    def run_epoch(self, command, source_rows):
        if command.epoch == self._epoch:
            self._action()
        return super().run_epoch(command, source_rows)


def master_of(lines: Path, parallelism: int, settings: dict[str, str], executor: InlineExecutor) -> JobMaster:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    build(env, lines)
    graph = build_job_graph(env.get_stream_graph(job_name="golden"))
    return JobMaster(JobID.generate(), graph, Configuration.from_dict(EPOCHS | settings), executor)


def lines_after(saved: Path, parallelism: int, lines: Path, more: dict[str, str] | None = None) -> list[str]:
    """What the job that continues from there writes, sorted."""
    settings = {"execution.state-recovery.path": str(saved), **(more or {})}
    master_of(lines, parallelism, settings, InlineExecutor()).run()
    return sorted(lines.read_text(encoding="utf-8").splitlines())
