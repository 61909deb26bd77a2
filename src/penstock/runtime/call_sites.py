"""Which line of a generated loop does the work of which user function: what a report of a failure needs to know.

A loop that fails is not run again, because its functions may have changed elements, or the world, already. The line of
the failure leads to the function, and to the variables that hold the element. If the function is inlined, there is no
frame of it on the stack, so the one that a call would have had is made from the function's syntax tree.
"""

from __future__ import annotations

import ast
import itertools
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, TracebackType
from typing import Any

from penstock.runtime.inlining import ONE_AT_A_TIME


@dataclass(frozen=True)
class FailedExpression:
    """What failed in a frame of a generated loop."""

    name: str
    """Of the frame: older Pythons have frames for comprehensions."""
    text: str | None
    """None if it is not known."""


@dataclass(frozen=True)
class InlinedCode:
    """The part of a function that a line of a loop contains."""

    function: FunctionType
    parts: tuple[ast.AST, ...]
    """With the names of the loop, and with their places in the file of the function."""
    is_generator: bool

    def frames(self, failed: Sequence[FailedExpression]) -> list[traceback.FrameSummary]:
        """The frames of a call of the function, and of its comprehensions. `failed` is what failed in the loop."""
        found = [(each.name, place) for each in failed for place in itertools.islice(self._places(each.text), 1)]
        code = self.function.__code__
        if not found:
            return [traceback.FrameSummary(code.co_filename, self._first_line, code.co_name)]
        names = [code.co_name, *(name for name, _ in found[1:])]
        return [self._frame(name, place) for name, (_, place) in zip(names, found, strict=True)]

    def _frame(self, name: str, place: ast.expr | ast.stmt) -> traceback.FrameSummary:
        columns: dict[str, Any] = {}
        if sys.version_info >= (3, 11):
            columns = {"end_lineno": place.end_lineno, "colno": place.col_offset, "end_colno": place.end_col_offset}
        return traceback.FrameSummary(self.function.__code__.co_filename, place.lineno, name, **columns)

    def _places(self, failed: str | None) -> Iterator[ast.expr | ast.stmt]:
        nodes = itertools.chain.from_iterable(map(ast.walk, self.parts)) if failed is not None else ()
        for node in nodes:
            if isinstance(node, (ast.expr, ast.stmt)) and hasattr(node, "lineno") and ast.unparse(node) == failed:
                yield node

    @property
    def _first_line(self) -> int:
        return int(getattr(self.parts[0], "lineno", self.function.__code__.co_firstlineno))


@dataclass(frozen=True)
class CallSite:
    """A line of generated code in which a user function may fail."""

    record: str | tuple[str, ...] | None = "value"
    """The local variable that holds the element; several if the loop has not built the tuple, but only its items.

    None if the frame that runs the loop holds the element.
    """
    owner: object = None
    """Whose function it is, for example an operator of the chain; None if the loop works for only one."""
    inlined: InlinedCode | None = None
    """The function's code; None if the function is called."""

    def record_in(self, variables: Mapping[str, Any]) -> Any:
        if isinstance(self.record, tuple):
            return tuple(variables.get(each) for each in self.record)
        return None if self.record is None else variables.get(self.record)


@dataclass(frozen=True)
class Line:
    """A line of generated code."""

    text: str
    site: CallSite | None = None
    """None if no user function can fail in it."""

    def indented(self, by: str = "    ") -> Line:
        return Line(by + self.text, self.site)


def failed_expression(step: TracebackType, source: str) -> FailedExpression:
    """The expression in the source of a generated loop that raised an exception."""
    code = step.tb_frame.f_code
    if sys.version_info < (3, 11):
        return FailedExpression(code.co_name, None)
    place = next(itertools.islice(code.co_positions(), step.tb_lasti // 2, None), None)
    try:
        with ONE_AT_A_TIME:
            tree = ast.parse(source)
    except SystemError:  # The user's program was parsing Python in another thread.
        return FailedExpression(code.co_name, None)
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)):
            if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == place:
                return FailedExpression(code.co_name, ast.unparse(node))
    return FailedExpression(code.co_name, None)
