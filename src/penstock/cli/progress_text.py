"""The progress of a job in words, from the document `/jobs/:id/progress`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

Progress = Mapping[str, Any]

_BAR = 20


_SHRINKING = ("bar", "watermark", "checkpoint", "records", "checkpoint", "bar", "watermark")
"""What is shortened first when there is little room: each mention moves a part to its next form."""


def in_one_line(progress: Progress, now_ms: int, room: int | None = None) -> str:
    """State, rates, watermark, last checkpoint, restarts; with a bar if it is known how much is left.

    `room` is the number of characters. The least important parts are shortened, then left out, until the line fits.
    """
    forms = dict(_forms(progress, now_ms))
    line = _joined(forms)
    for name in _SHRINKING:
        if room is None or len(line) <= room:
            break
        forms[name] = forms.get(name, ())[1:]
        line = _joined(forms)
    return line


def _joined(forms: Mapping[str, tuple[str, ...]]) -> str:
    return "  ".join(each[0] for each in forms.values() if each)


def _forms(progress: Progress, now_ms: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of the line by name, each with its forms from the longest to the shortest."""
    yield "state", (_state(progress),)
    if progress["share-done"] is not None:
        yield "bar", (bar(progress["share-done"]), f"{progress['share-done']:.0%}")
    yield "records", (f"{count(progress['records'])} records",)
    yield "rate", (f"{count(progress['records-per-second'])}/s",)
    if progress["watermark"] is not None:
        lag = _lag(progress["watermark-lag"])
        yield "watermark", (f"watermark {clock(progress['watermark'])} ({lag})", lag)
    checkpoint = progress["checkpoint"]
    if checkpoint is not None:
        ago = duration(max(0, now_ms - checkpoint["completed"]))
        yield "checkpoint", (f"checkpoint {checkpoint['id']} {ago} ago", f"checkpoint {ago} ago")
    if progress["backpressure"]["level"] != "ok":
        yield "backpressure", (f"backpressure {progress['backpressure']['level']}",)
    if progress["restarts"]:
        yield "restarts", (f"restarts {progress['restarts']}",)


_AWAITED = {"workers": "waiting for workers", "state": "restoring state", "functions": "opening functions"}


def _state(progress: Progress) -> str:
    awaited = progress.get("waiting-for")  # A job manager of an older version does not say it.
    return f"{progress['state']}, {_AWAITED[awaited]}" if awaited in _AWAITED else str(progress["state"])


def _lag(ms: int) -> str:
    """How far event time is behind the clock, or ahead of it: timestamps may be in the future."""
    return f"lag {duration(ms)}" if ms >= 0 else f"ahead {duration(-ms)}"


def closing_line(progress: Progress) -> str:
    """How the job has ended, how much it has read and how long it took."""
    ends = {"FINISHED": "finished", "CANCELED": "was cancelled", "FAILED": "failed", "SUSPENDED": "was suspended"}
    how = ends.get(progress["state"], progress["state"])
    if progress["savepoint"] is not None:
        how = f"stopped with savepoint {progress['savepoint']}"
    restarts = f", {progress['restarts']} restarts" if progress["restarts"] else ""
    again = " in all attempts" if progress["restarts"] else ""
    amount = f"{count(progress['records'])} records{again} in {duration(progress['duration'])}"
    return f"Job '{progress['name']}' {how}: {amount}{restarts}"


def status_lines(progress: Progress, now_ms: int) -> Iterator[str]:
    """What `penstock status` prints."""
    yield f"Job:          {progress['name']} ({progress['jid']})"
    since = moment(progress["start-time"])
    yield f"State:        {_state(progress)}, for {duration(progress['duration'])} since {since}"
    if progress["share-done"] is not None:
        yield f"Done:         {bar(progress['share-done'])}"
    again = " in all attempts" if progress["restarts"] else ""
    yield f"Records:      {count(progress['records'])} read{again}, {count(progress['records-per-second'])}/s now"
    if progress["watermark"] is None:
        yield "Watermark:    none"
    else:
        behind = progress["watermark-lag"]
        distance = f"{duration(behind)} behind" if behind >= 0 else f"{duration(-behind)} ahead of the clock"
        yield f"Watermark:    {moment(progress['watermark'])}, {distance}"
    busy, held = progress["busy"], progress["backpressure"]
    if busy["vertex"] is not None:
        yield f"Busiest:      {busy['vertex']} ({busy['share']:.0%})"
    where = f" at {held['vertex']} ({held['share']:.0%})" if held["level"] != "ok" else ""
    yield f"Backpressure: {held['level']}{where}"
    yield f"Checkpoint:   {_checkpoint(progress, now_ms)}"
    yield f"Restarts:     {progress['restarts']}"
    if progress["failure"] is not None:
        yield f"Last failure: {progress['failure']}"
    if progress["savepoint"] is not None:
        yield f"Savepoint:    {progress['savepoint']}"


def _checkpoint(progress: Progress, now_ms: int) -> str:
    failed = f", {progress['failed-checkpoints']} failed" if progress["failed-checkpoints"] else ""
    last = progress["checkpoint"]
    if last is None:
        return f"none{failed}"
    ago = duration(max(0, now_ms - last["completed"]))
    return f"{last['id']}, {ago} ago, took {duration(last['duration'])}, {size(last['size'])} of state{failed}"


def bar(share: float) -> str:
    full = int(share * _BAR)
    return f"[{'█' * full}{'░' * (_BAR - full)}] {share:.0%}"


def count(number: float) -> str:
    for limit, letter in ((1e9, "G"), (1e6, "M")):
        if number >= limit:
            return f"{number / limit:.2f}{letter}"
    return f"{number:,.0f}"


def size(number: int) -> str:
    value = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def duration(ms: int) -> str:
    """A duration in at most two units."""
    if ms < 0:
        return f"-{duration(-ms)}"
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    seconds = ms // 1000
    for unit, above, below in ((86_400, "d", "h"), (3_600, "h", "min"), (60, "min", "s")):
        if seconds >= unit:
            part = {"h": 3_600, "min": 60, "s": 1}[below]
            return f"{seconds // unit} {above} {seconds % unit // part} {below}"
    raise AssertionError("a minute has 60 seconds")


def clock(at_ms: int) -> str:
    """The time of day, with the day if that is not today."""
    at = time.localtime(at_ms / 1000)
    is_today = at[:3] == time.localtime()[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", at)


def moment(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))
