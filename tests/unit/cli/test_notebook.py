"""The line that a notebook shows about a job in the background."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any

import pytest

from penstock.common import Configuration, JobStatus, WatermarkStrategy
from penstock.common.exceptions import EnvironmentSetupError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource
from penstock.notebook import watch


class Notebook(ModuleType):
    """What IPython.display offers: a place on the page that can be written again."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.lines: list[str] = []
        self.has_ended = threading.Event()

    def display(self, bundle: dict[str, str], raw: bool, display_id: bool) -> Notebook:
        assert raw and display_id
        self.update(bundle, raw=True)
        return self

    def update(self, bundle: dict[str, str], raw: bool) -> None:
        self.lines.append(bundle["text/plain"])
        if any(state in self.lines[-1] for state in ("FINISHED", "CANCELED", "FAILED")):
            self.has_ended.set()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", made)
    return made


def environment() -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline"})
    return StreamExecutionEnvironment.get_execution_environment(config)


def test_a_job_in_the_background_is_shown_until_it_is_cancelled(notebook: Notebook) -> None:
    env = environment()
    endless = DataGeneratorSource(lambda number: number, 2**60)
    env.from_source(endless, WatermarkStrategy.no_watermarks(), "n").filter(lambda n: False).print()
    job = watch(env.execute_async("endless"))
    assert job.get_job_status().result() is not JobStatus.CANCELED
    job.cancel().result()
    assert notebook.has_ended.wait(timeout=60)
    assert all(line.startswith(f"job 'endless' ({str(job.get_job_id())[:8]}): ") for line in notebook.lines)
    assert notebook.lines[0].endswith("starting") and "CANCELED" in notebook.lines[-1]


def test_a_failure_is_reported_in_one_line(notebook: Notebook) -> None:
    def fail(number: Any) -> Any:
        raise ValueError("no such number")

    env = environment()
    env.from_collection([1]).map(fail).print()
    watch(env.execute_async("failing"))
    assert notebook.has_ended.wait(timeout=60)
    assert "FAILED" in notebook.lines[-1] and "ValueError: no such number" in notebook.lines[-1]
    assert "\n" not in notebook.lines[-1]


def test_without_ipython_it_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    env = environment()
    env.from_collection([1]).print()
    job = env.execute_async("short")
    with pytest.raises(EnvironmentSetupError, match="by IPython, which is not installed"):
        watch(job)
    job.get_job_execution_result().result()
