"""Jobs in a notebook: one runs in the background while a line below its cell says how it is doing.

    from penstock.notebook import watch

    job = watch(env.execute_async("orders"))  # the cell ends at once; lines of print() show in the cell that runs then
    job.cancel()

`stream.to_pandas(limit=10)` runs a job and gives its elements as a DataFrame of pandas.
"""

from __future__ import annotations

import importlib
import threading
import time
from typing import Any, TypeVar

from penstock.common.exceptions import EnvironmentSetupError
from penstock.common.job_client import JobClient

__all__ = ["watch"]

_PACE_S = 0.5

C = TypeVar("C", bound=JobClient)


def watch(client: C) -> C:
    """Show the state of a job in this cell, and keep it up to date until the job ends; returns at once."""
    line = _display(f"{_called(client)}: starting")
    threading.Thread(target=_follow, args=(client, line), name="penstock-watch", daemon=True).start()
    return client


def _follow(client: JobClient, line: Any) -> None:
    began = time.monotonic()
    ended = client.get_job_execution_result()
    shown = ""
    while True:
        is_last = ended.done()
        text = f"{_called(client)}: {client.get_job_status().result().name}, {time.monotonic() - began:.0f} s"
        if is_last and (failure := _failure_of(ended)) is not None:
            text += f": {failure}"
        if text != shown:
            line.update({"text/plain": text}, raw=True)
            shown = text
        if is_last:
            return
        time.sleep(_PACE_S)


def _called(client: JobClient) -> str:
    """The name, and enough of the id to tell runs of the same job apart."""
    return f"job '{client.job_name}' ({str(client.get_job_id())[:8]})"


def _failure_of(ended: Any) -> str | None:
    error = ended.exception()
    return None if error is None else str(error).partition("\n")[0]


def _display(text: str) -> Any:
    try:
        display = importlib.import_module("IPython.display").display
    except ModuleNotFoundError:
        raise EnvironmentSetupError(
            "penstock.notebook.watch shows its line by IPython, which is not installed; outside of notebooks use "
            "client.get_job_status()"
        ) from None
    return display({"text/plain": text}, raw=True, display_id=True)
