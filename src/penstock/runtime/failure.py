"""The description of a failed task: operator, subtask, record, and the user's own stack frames."""

from __future__ import annotations

import os
import pickle
import platform
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

import penstock
from penstock.common.exceptions import CheckpointError, PenstockError, StateAccessError
from penstock.runtime.call_sites import failed_expression
from penstock.runtime.combining import ReceivingWindow
from penstock.runtime.generated_loop import GENERATED_FILE_PREFIX, GeneratedLoop
from penstock.runtime.keyed_loop import RECORD
from penstock.runtime.loop_syntax import OWN
from penstock.runtime.operators.base import OperatorContext, StreamOperator
from penstock.runtime.operators.process import TIMER_CALLS
from penstock.runtime.partitioning import ByKeyGroup
from penstock.runtime.shipped_files import as_submitted

_PACKAGE = os.path.dirname(os.path.abspath(penstock.__file__)) + os.sep
_LONGEST_RECORD = 500
_SELF_EXPLANATORY = (PenstockError, FileNotFoundError, PermissionError)


@dataclass(frozen=True)
class TaskFailure:
    """A failure as it is sent to the driver. `record` is the repr of the element; None if no element was processed."""

    vertex: int
    task_name: str
    subtask: int
    parallelism: int
    operator: str
    record: str | None
    exception_type: str
    message: str
    user_traceback: str
    pickled_exception: bytes | None
    is_user_error: bool
    host: str = ""
    made_at: str | None = None
    """The line of the program that called key_by, if that failed. Otherwise None: the operator's own line counts."""
    timer: str | None = None
    """The key and the time of the timer that was firing; None if no timer was."""

    def exception(self) -> BaseException | None:
        if self.pickled_exception is None:
            return None
        try:
            loaded: BaseException = pickle.loads(self.pickled_exception)
        except Exception:  # A user's exception class may fail to load in any way. The text is complete without it.
            return None
        return loaded


def describe_failure(exc: BaseException, vertex: int, task_name: str, subtask: int, parallelism: int) -> TaskFailure:
    steps = [_Step(step, outer) for step, outer in _with_outer(_steps_of(exc))]
    name, record = _where(steps)
    timer = _timer([step.frame for step in steps])
    owners = [owner for step in steps for owner in step.owners]
    elsewhere = next((each for each in owners if isinstance(each, (ByKeyGroup, ReceivingWindow))), None)
    if isinstance(elsewhere, ByKeyGroup):
        name = "key_by"
    if timer is not None:
        record = None
    if isinstance(exc, CheckpointError):
        record = None  # State is restored before there is any record.

    all_frames = [step.summary() for step in steps]
    user_frames = [frame for frame in all_frames if _is_users(frame.filename)]
    # If there is a record but no user frame, the user's function is a built-in that failed on the record.
    # The message of a self-explanatory error tells the user what to do, so it needs no frames of Penstock's.
    is_user_error = bool(user_frames) or record is not None or timer is not None or isinstance(exc, _SELF_EXPLANATORY)
    shown = user_frames if is_user_error else all_frames
    hint = "" if not all_frames or _is_users(all_frames[-1].filename) else _hint(exc)
    error = "".join(traceback.format_exception_only(type(exc), exc))
    text = "".join(traceback.format_list(as_submitted(shown))) + (f"{error.rstrip()}{hint}\n" if hint else error)

    return TaskFailure(
        vertex=vertex,
        task_name=task_name,
        subtask=subtask,
        parallelism=parallelism,
        operator=task_name if name is None else name,
        record=record,
        exception_type=type(exc).__name__,
        message=str(exc) + hint,
        user_traceback=text,
        pickled_exception=_pickled(exc),
        is_user_error=is_user_error,
        host=platform.node(),
        made_at=None if elsewhere is None else elsewhere.made_at,
        timer=timer,
    )


def _hint(exc: BaseException) -> str:
    """What Python's own message lacks if Penstock could not use the result of a function."""
    if isinstance(exc, TypeError) and str(exc).endswith("object is not iterable"):
        return (
            "; a function that emits any number of elements (flat_map, process_element, on_timer ...) must yield them, "
            "return an iterable such as a list, or return None for no elements"
        )
    return ""


def _steps_of(exc: BaseException) -> list[TracebackType]:
    """The way that an exception came, from the outermost frame on.

    A generator turns a StopIteration into a RuntimeError, which has not been in the frames where that came from.
    """
    steps = _steps(exc.__traceback__)
    if isinstance(exc, RuntimeError) and isinstance(exc.__cause__, StopIteration):
        inner = _steps(exc.__cause__.__traceback__)
        # Newer Pythons make the RuntimeError in the generator itself.
        is_in_both = steps and inner and steps[-1].tb_frame is inner[0].tb_frame
        steps = steps[: -1 if is_in_both else None] + inner
    return steps


def _steps(trace: TracebackType | None) -> list[TracebackType]:
    steps = []
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    return steps


class _Step:
    """A frame that an exception came through."""

    def __init__(self, trace: TracebackType, outer: FrameType | None) -> None:
        self.frame = trace.tb_frame
        self.variables = self.frame.f_locals
        self.filename = self.frame.f_code.co_filename
        self.is_generated = self.filename.startswith(GENERATED_FILE_PREFIX)
        self._trace = trace
        loop = None if outer is None else outer.f_locals.get("self")
        self._loop = loop if self.is_generated and isinstance(loop, GeneratedLoop) else None
        self.site = None if self._loop is None else self._loop.source.sites.get(trace.tb_lineno)
        """The user function that a line of a generated loop belongs to; None for other frames."""

    @property
    def owners(self) -> list[object]:
        """Who works in this frame."""
        return [self.variables.get("self"), None if self.site is None else self.site.owner]

    def summary(self) -> traceback.FrameSummary:
        """How a traceback shows the frame; in place of an inlined function's line in a loop, its own line."""
        if self._loop is None or self.site is None or self.site.inlined is None:
            return traceback.extract_tb(self._trace, limit=1)[0]
        innermost, further = self._trace, self._trace.tb_next
        # Older Pythons have a frame for a comprehension.
        while further is not None and further.tb_frame.f_code.co_filename == self.filename:
            innermost, further = further, further.tb_next
        return self.site.inlined.frame(failed_expression(innermost, self._loop.source.text))


def _with_outer(steps: list[TracebackType]) -> Iterable[tuple[TracebackType, FrameType | None]]:
    """Each step with the frame that called its own."""
    return zip(steps, [None, *(step.tb_frame for step in steps)], strict=False)


def _where(steps: list[_Step]) -> tuple[str | None, str | None]:
    """The name of the innermost operator on the stack, and the record that it was processing.

    The record is found by the name of a variable: `value` in the runtime's own loops, and `RECORD` in generated loops
    that do the work of a process function. In other generated loops, the line tells the operator and the variables.
    """
    record: str | None = None
    for step in reversed(steps):
        names, operator = step.variables, step.variables.get("self")
        if step.site is not None:
            record = None if step.site.record is None else short_repr(step.site.record_in(names))
            operator = step.site.owner
        elif not step.filename.startswith(_PACKAGE) and not step.is_generated:
            # What the user's code has called, such as a state, may have a `value` that is not the record.
            record = short_repr(names[RECORD]) if RECORD in names else None
        elif record is None and "value" in names:
            record = short_repr(names["value"])
        if isinstance(operator, StreamOperator) and hasattr(operator, "context"):  # It has none while it is being made.
            return operator.context.operator_name, record or _current_key(operator.context)
        if isinstance(operator, ReceivingWindow):
            return operator.name, record
    return None, record


def _timer(frames: list[FrameType]) -> str | None:
    """The timer that was firing. A generated loop over timers holds their time in the variable for the record."""
    for at, frame in enumerate(frames):
        if frame.f_code in TIMER_CALLS:
            for names in (inner.f_locals for inner in frames[at:]):
                if RECORD in names:
                    return f"key {short_repr(names.get(f'{OWN}key'))} at {names[RECORD]}"
            if "timestamp" in frame.f_locals:
                key = frame.f_locals["self"].context.keyed_state.key()
                return f"key {short_repr(key)} at {frame.f_locals['timestamp']}"
    return None


def _current_key(context: OperatorContext) -> str | None:
    """In place of a record, for example when a window fires: the current key. None if there is none."""
    try:
        return f"<none, but key {short_repr(context.keyed_state.key())}>"
    except StateAccessError:
        return None


def short_repr(value: Any) -> str:
    """The repr of a record, shortened if it is long. A repr that raises must not hide the failure."""
    try:
        text = repr(value)
    except Exception as exc:
        return f"<{type(value).__name__} whose repr() raised {type(exc).__name__}>"
    return text if len(text) <= _LONGEST_RECORD else text[:_LONGEST_RECORD] + "..."


def _is_users(filename: str) -> bool:
    inner = (_PACKAGE, GENERATED_FILE_PREFIX, "<frozen ")
    return not filename.startswith(inner) and not any(
        f"{os.sep}{package}{os.sep}" in filename for package in ("pyspark", "py4j", "cloudpickle")
    )


def _pickled(exc: BaseException) -> bytes | None:
    try:
        return bytes(cloudpickle.dumps(exc))
    except Exception:  # An exception may hold anything. Its text is sent in any case.
        return None
