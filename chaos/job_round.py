"""One round: the all-round job as a real process, disturbed and started again until it has come to its end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

import penstock
from chaos.expected import differences, expected_lines, written_lines
from chaos.processes import end_session, kill, pause, roles_in, wait_until_gone, write_stacks
from chaos.recovery import folder_to_restore

KINDS = ("worker", "driver", "executor", "point", "stop", "pause")
_JOB = Path(__file__).with_name("all_round_job.py")
_LONGEST_WAIT_S = 2.5
_LONGEST_PAUSE_S = 3.0
_GOES_WITHIN_S = 30


@dataclass(frozen=True)
class RoundPlan:
    records: int
    parallelisms: tuple[int, ...]
    """Of the first start, and of those that follow when the driver was killed or the job stopped."""
    backend: str
    interval: str
    kills: tuple[str, ...]
    points: tuple[str, ...] = ()
    """Where processes kill themselves, as `point:n`."""
    timeout_s: float = 600
    epoch_records: int = 60

    @property
    def master(self) -> str:
        return "local-cluster[2,1,1024]" if "executor" in self.kills else "local[2]"


@dataclass
class Outcome:
    plan: RoundPlan
    kills: list[str] = field(default_factory=list)
    starts: int = 0
    restarts: int = 0
    """Of the job by itself, after a worker or an executor was killed."""
    seconds: float = 0
    lines: int = 0
    faults: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        killed = Counter(_kind_of(each) for each in self.kills)
        return {**killed, "starts": self.starts, "restarts": self.restarts, "lines": self.lines}

    def __str__(self) -> str:
        plan = self.plan
        used = "->".join(map(str, plan.parallelisms[: max(1, self.starts)]))
        told = "; ".join(self.faults) if self.faults else f"{self.lines} lines ok"
        return (
            f"{plan.master}, parallelism {used}, {plan.backend}, checkpoints every {plan.interval}, "
            f"disturbed by {', '.join(self.kills) or 'nothing'}; {self.starts} starts, {self.restarts} restarts, "
            f"{self.seconds:.1f} s: {told}"
        )


def _kind_of(disturbance: str) -> str:
    if disturbance.startswith("at "):
        return "kills at points"
    if disturbance.startswith("pause of"):
        return "pauses"
    return "stops with savepoint" if disturbance == "stop" else f"kills of {disturbance}"


def run_round(plan: RoundPlan, chance: random.Random, folder: Path) -> Outcome:
    outcome = Outcome(plan)
    began = time.monotonic()
    try:
        _Round(plan, chance, folder, outcome).run()
    except (RuntimeError, TimeoutError) as error:
        outcome.faults.append(str(error))
    outcome.seconds = time.monotonic() - began
    return outcome


class _Round:
    def __init__(self, plan: RoundPlan, chance: random.Random, folder: Path, outcome: Outcome) -> None:
        self._plan = plan
        self._chance = chance
        self._folder = folder
        self._outcome = outcome
        (folder / "tmp").mkdir()
        _link_spark_home(folder / "spark")

    def run(self) -> None:
        waiting = [kind for kind in self._plan.kills if kind != "point"]
        while self._start_until_it_must_start_again(waiting):
            if self._to_restore() is None and written_lines(self._output):
                break  # It was killed when all was done, and its checkpoints were removed.
        written = written_lines(self._output)
        self._outcome.lines = len(written)
        self._outcome.kills += [f"at {point}" for point in self._plan.points if self._was_reached(point)]
        self._outcome.faults += differences(expected_lines(self._plan.records), written)

    def _was_reached(self, point: str) -> bool:
        counter = self._output / ".kill-points" / point
        return counter.exists() and counter.stat().st_size >= int(point.partition(":")[2])

    @property
    def _checkpoints(self) -> Path:
        return self._folder / "checkpoints"

    @property
    def _savepoints(self) -> Path:
        return self._folder / "savepoints"

    def _to_restore(self) -> str | None:
        return folder_to_restore(self._checkpoints, self._savepoints)

    @property
    def _output(self) -> Path:
        return self._folder / "output"

    def _start_until_it_must_start_again(self, waiting: list[str]) -> bool:
        """False if the job came to its end."""
        outcome = self._outcome
        log = self._folder / f"log-{outcome.starts}"
        with log.open("w") as out:
            process = subprocess.Popen(
                self._command(), stdout=out, stderr=subprocess.STDOUT, env=self._environment(), start_new_session=True
            )
        outcome.starts += 1
        try:
            must_start_again = self._disturb_until_end(process, log, waiting)
            self._check_nobody_is_left(process)
        except TimeoutError:
            write_stacks(process.pid)
            raise
        finally:
            end_session(process.pid)
            process.wait()
            outcome.restarts += log.read_text().count("restarting in")
        if not must_start_again and process.returncode != 0:
            raise RuntimeError(f"the job failed instead of restarting, with code {process.returncode}: {_tail(log)}")
        return must_start_again

    def _command(self) -> list[str]:
        plan = self._plan
        words = [sys.executable, "-m", "penstock.cli", "run", "--master", plan.master, str(_JOB)]
        settings = {
            "output": self._output,
            "checkpoints": self._checkpoints,
            "records": plan.records,
            "epoch-records": plan.epoch_records,
            "parallelism": plan.parallelisms[min(self._outcome.starts, len(plan.parallelisms) - 1)],
            "interval": plan.interval,
            "backend": plan.backend,
            "restore": self._to_restore(),
        }
        words += [f"--{name}={value}" for name, value in settings.items() if value is not None]
        return words + [f"--die-at={point}" for point in plan.points]

    def _environment(self) -> dict[str, str]:
        """Everything that killed processes leave behind goes with the folder of the round."""
        scratch = str(self._folder / "tmp")
        return {
            **os.environ,
            "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            "TMPDIR": scratch,
            "SPARK_LOCAL_DIRS": scratch,
            "SPARK_HOME": str(self._folder / "spark"),
        }

    def _disturb_until_end(self, process: subprocess.Popen[bytes], log: Path, waiting: list[str]) -> bool:
        """True if the driver was killed, or killed itself, or the job was stopped with a savepoint."""
        deadline = time.monotonic() + self._plan.timeout_s
        while waiting and self._let_run(process, log, deadline):
            done = self._disturb(waiting[0], process.pid, log)
            if done is None:
                continue  # Not there yet, or just gone.
            self._outcome.kills.append(done)
            kind = waiting.pop(0)
            if kind == "stop":
                self._wait(process, log, deadline)
            if kind in ("stop", "driver"):
                return True
        self._wait(process, log, deadline)
        return process.returncode == -signal.SIGKILL

    def _disturb(self, kind: str, session: int, log: Path) -> str | None:
        """What was done, in words; None if there was nobody to do it to."""
        if kind == "stop":
            return "stop" if self._stop(_job_id(log)) else None
        victim = self._victim(kind, session)
        if victim is None:
            return None
        role, pid = victim
        if kind == "pause":
            return f"pause of {role}" if pause(pid, self._chance.uniform(0.1, _LONGEST_PAUSE_S)) else None
        return role if kill(pid) else None

    def _stop(self, job_id: str) -> bool:
        """False if the job was not stopped: it has just ended, or it failed before its savepoint was written."""
        words = [sys.executable, "-m", "penstock.cli", "stop", "-p", str(self._savepoints), job_id]
        stopped = subprocess.run(words, env=self._environment(), capture_output=True, text=True, check=False)
        return stopped.returncode == 0

    def _let_run(self, process: subprocess.Popen[bytes], log: Path, deadline: float) -> bool:
        """Let the job run for a while; False if it has ended."""
        # Most kills are to come when the job is at work, some while it starts.
        is_begun = self._has_state if self._chance.random() < 0.85 else _is_submitted
        while not is_begun(log) and process.poll() is None:
            self._check_time(log, deadline)
            time.sleep(0.02)
        until = time.monotonic() + self._chance.uniform(0, _LONGEST_WAIT_S)
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        return process.poll() is None

    def _has_state(self, log: Path) -> bool:
        job_id = _job_id(log)
        return bool(job_id) and any((self._checkpoints / job_id / "shared").glob("*"))

    def _victim(self, kind: str, session: int) -> tuple[str, int] | None:
        if kind == "driver":
            return "driver", session
        roles = roles_in(session)
        if kind == "pause":
            roles["driver"] = [session]
            return _choose(self._chance, roles, list(roles))
        wanted = ["executor"] if kind == "executor" else ["worker", "worker", "worker", "python-daemon"]
        return _choose(self._chance, roles, wanted)

    def _wait(self, process: subprocess.Popen[bytes], log: Path, deadline: float) -> None:
        while process.poll() is None:
            self._check_time(log, deadline)
            time.sleep(0.05)

    def _check_time(self, log: Path, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the job did not end within {self._plan.timeout_s:.0f} s: {_tail(log)}")

    def _check_nobody_is_left(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        left = wait_until_gone(process.pid, _GOES_WITHIN_S)
        if left:
            commands = [each.command[:80] for each in left]
            raise RuntimeError(f"still there {_GOES_WITHIN_S} s after the driver: {commands}")


def _choose(chance: random.Random, roles: dict[str, list[int]], wanted: list[str]) -> tuple[str, int] | None:
    there = [role for role in wanted if roles[role]]
    if not there:
        return None
    role = chance.choice(there)
    return role, chance.choice(roles[role])


def _job_id(log: Path) -> str:
    return log.read_text().partition("submitted with JobID ")[2][:32]


def _link_spark_home(home: Path) -> None:
    """A home for Spark of this round's own, in which executors of a local cluster keep their logs."""
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "work":
            (home / each.name).symlink_to(each)


def _is_submitted(log: Path) -> bool:
    return "Job has been submitted" in log.read_text()


def _tail(log: Path) -> str:
    return " | ".join(line for line in log.read_text().splitlines()[-6:])
