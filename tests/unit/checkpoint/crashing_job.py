"""The all-round job in a child process that dies where it is told to, and is started again until it has ended."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from chaos.all_round_job import Settings, build
from chaos.expected import differences, expected_lines, written_lines
from chaos.recovery import folder_to_restore

from penstock.checkpoint.folders import folder_at
from penstock.common import Configuration, JobID
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor
from penstock.jobmaster.job_master import JobMaster
from penstock.testing import Fault, FaultPlan, FaultyFolder

SETTINGS = {
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.state-recovery.claim-mode": "CLAIM",
    "penstock.epoch.interval": "1 ms",
    "penstock.epoch.max-records": "20",
    # Every epoch is a checkpoint, so that each run counts alike; nothing restarts by itself.
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "0",
}


@dataclass(frozen=True)
class Start:
    """One start of the job, and where it dies."""

    faults: tuple[Fault, ...] = ()
    die_at: tuple[str, ...] = ()
    parallelism: int = 2
    settings: dict[str, str] = field(default_factory=dict)


class CrashingJob:
    """`starts` one after the other, then as often as it takes without faults."""

    def __init__(self, folder: Path, records: int = 200, has_other_region: bool = False) -> None:
        self.output = folder / "output"
        self.checkpoints = folder / "checkpoints"
        self._folder = folder
        self._records = records
        self._has_other_region = has_other_region
        self._number = 0
        self.deaths = 0

    def plan(self, start: int) -> FaultPlan:
        return FaultPlan(str(self._folder / f"notes-{start}"))

    def counts(self) -> dict[str, int]:
        """How often each kill point was reached that the first start has planned for."""
        return {path.name.partition(":")[0]: path.stat().st_size for path in (self._folder / "kill-1").iterdir()}

    def run(self, *starts: Start) -> list[str]:
        """In the end: what is wrong with the result, nothing if all is well."""
        for start in starts:
            if not self.start(start):
                break
        else:
            last = starts[-1] if starts else Start()
            assert not self.start(Start((), (), last.parallelism, last.settings)), "it died without being told to"
        return differences(expected_lines(self._records, self._has_other_region), written_lines(self.output))

    def start(self, start: Start) -> bool:
        """True if it died before its end."""
        restore = folder_to_restore(self.checkpoints, self._folder / "savepoints")
        if restore is None and written_lines(self.output):
            return False  # It had come to its end, and removed its checkpoints.
        self._number += 1
        code = in_child(lambda: self._run(start, restore), self._folder / f"error-{self._number}")
        self.deaths += bool(code)
        return bool(code)

    def _run(self, start: Start, restore: str | None) -> None:
        plan = self.plan(self._number).of(*start.faults)
        settings = {**SETTINGS, "execution.checkpointing.dir": str(self.checkpoints), **start.settings}
        if restore is not None:
            settings["execution.state-recovery.path"] = restore
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(start.parallelism)
        counts = str(self._folder / f"kill-{self._number}")
        build(env, Settings(str(self.output), self._records, start.die_at, counts, self._has_other_region, idle_s=0.02))
        graph = build_job_graph(env.get_stream_graph(job_name="all-round"))
        JobMaster(
            JobID.generate(),
            graph,
            Configuration.from_dict(settings),
            InlineExecutor(),
            lambda uri: FaultyFolder(folder_at(uri), plan),
        ).run()


def in_child(action, error_file: Path) -> int:
    """Run `action` in a forked process: 0, or how it died. What it raises is raised here."""
    child = os.fork()
    if child == 0:
        try:
            gc.freeze()  # What the parent made is the parent's to take care of.
            action()
            os._exit(0)
        except BaseException:
            error_file.write_text(traceback.format_exc())
        finally:
            os._exit(1)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    code = os.waitstatus_to_exitcode(status)
    if code == 1:
        error = error_file.read_text()
        assert "CheckpointError: " in error.splitlines()[-1], f"the job failed instead of dying:\n{error}"
    return code
