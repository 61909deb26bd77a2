"""Windows of the Table API: groups of rows in time, and the rows before a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.table.expression import Column, Expression, RowInterval, SqlContext, Verbatim

__all__ = ["GroupWindow", "Tumble", "Session", "Slide", "Over", "OverWindow"]


@dataclass(frozen=True, eq=False)
class GroupWindow:
    """A window with an alias, for `table.window(...)`; it is made by `Tumble`, `Slide` or `Session`.

    >>> from penstock.table.expressions import col, lit
    >>> Tumble.over(lit(5).minutes).on(col("ts")).alias("w").name
    'w'
    """

    function: str
    time: Expression[Any]
    spans: tuple[Expression[Any], ...]
    name: str

    def as_sql(self, context: SqlContext, what: str = "") -> str:
        """The window as GROUP BY has it, or one of its properties: START, END, ROWTIME, PROCTIME."""
        function = f"{self.function}_{what}" if what else self.function
        return f"{function}({', '.join(each.as_sql(context) for each in (self.time, *self.spans))})"


def _checked_span(span: Any, where: str) -> Expression[Any]:
    if isinstance(span, RowInterval):
        raise UnsupportedFeatureError(
            f"{where}: windows of a number of rows are not supported; use a time, lit(5).minutes"
        )
    if not isinstance(span, Expression):
        raise TypeError(f"{where} takes an interval such as lit(5).minutes, got {span!r}")
    return span


class Tumble:
    """Windows of a fixed length, one after the other.

    >>> from penstock.table.expressions import col, lit
    >>> window = Tumble.over(lit(10).minutes).on(col("rowtime")).alias("w")
    """

    @classmethod
    def over(cls, size: Expression[Any]) -> TumbleWithSize:
        """The length of the windows."""
        return TumbleWithSize(_checked_span(size, "Tumble.over"))


@dataclass(frozen=True, eq=False)
class TumbleWithSize:
    """Windows of a fixed length, without their time yet."""

    size: Expression[Any]

    def on(self, time_field: Expression[Any]) -> WindowOnTime:
        """The column of times: event time or processing time."""
        return WindowOnTime("TUMBLE", time_field, (self.size,))


class Slide:
    """Windows of a fixed length that overlap.

    >>> from penstock.table.expressions import col, lit
    >>> window = Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("rowtime")).alias("w")
    """

    @classmethod
    def over(cls, size: Expression[Any]) -> SlideWithSize:
        """The length of the windows."""
        return SlideWithSize(_checked_span(size, "Slide.over"))


@dataclass(frozen=True, eq=False)
class SlideWithSize:
    """Windows that overlap, without the time between their begins yet."""

    size: Expression[Any]

    def every(self, slide: Expression[Any]) -> SlideWithSizeAndSlide:
        """The time between the begins of two windows."""
        return SlideWithSizeAndSlide(self.size, _checked_span(slide, "Slide.every"))


@dataclass(frozen=True, eq=False)
class SlideWithSizeAndSlide:
    """Windows that overlap, without their time yet."""

    size: Expression[Any]
    slide: Expression[Any]

    def on(self, time_field: Expression[Any]) -> WindowOnTime:
        """The column of times: event time or processing time."""
        return WindowOnTime("HOP", time_field, (self.slide, self.size))


class Session:
    """Windows that last while rows follow each other within a gap.

    >>> from penstock.table.expressions import col, lit
    >>> window = Session.with_gap(lit(10).minutes).on(col("rowtime")).alias("w")
    """

    @classmethod
    def with_gap(cls, gap: Expression[Any]) -> SessionWithGap:
        """The time without rows that ends a window."""
        return SessionWithGap(_checked_span(gap, "Session.with_gap"))


@dataclass(frozen=True, eq=False)
class SessionWithGap:
    """Sessions, without their time yet."""

    gap: Expression[Any]

    def on(self, time_field: Expression[Any]) -> WindowOnTime:
        """The column of times: event time or processing time."""
        return WindowOnTime("SESSION", time_field, (self.gap,))


@dataclass(frozen=True, eq=False)
class WindowOnTime:
    """A window without a name yet."""

    function: str
    time: Expression[Any]
    spans: tuple[Expression[Any], ...]

    def alias(self, alias: str) -> GroupWindow:
        """The name by which `group_by` and `select` know the window."""
        return GroupWindow(self.function, self.time, self.spans, alias)


@dataclass(frozen=True, eq=False)
class OverWindow:
    """The rows before each row, with an alias, for `table.over_window(...)`; it is made by `Over`.

    >>> from penstock.table.expressions import col
    >>> Over.partition_by(col("a")).order_by(col("ts")).alias("w").name
    'w'
    """

    partition: tuple[Expression[Any], ...] = ()
    order: Expression[Any] | None = None
    before: Expression[Any] | None = None
    after: Expression[Any] | None = None
    name: str = ""

    def as_sql(self, context: SqlContext) -> str:
        """What stands in brackets after OVER."""
        parts = []
        if self.partition:
            parts.append("PARTITION BY " + ", ".join(each.as_sql(context) for each in self.partition))
        assert self.order is not None
        parts.append("ORDER BY " + self.order.as_sql(context))
        before, after = self._bound(self.before, context), self._bound(self.after, context)
        is_rows = "ROW" in (before[0], after[0])
        if self.before is None and self.after is None:
            return " ".join([*parts, "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"])
        end = "CURRENT ROW" if after[1] in ("CURRENT", "UNBOUNDED") else f"{after[1]} FOLLOWING"
        start = "CURRENT ROW" if before[1] == "CURRENT" else f"{before[1]} PRECEDING"
        return " ".join([*parts, f"{'ROWS' if is_rows else 'RANGE'} BETWEEN {start} AND {end}"])

    @staticmethod
    def _bound(bound: Expression[Any] | None, context: SqlContext) -> tuple[str, str]:
        """ROW or RANGE, and how far."""
        if bound is None:
            return "", "CURRENT"
        if isinstance(bound, RowInterval):
            return "ROW", str(bound.rows)
        if isinstance(bound, Verbatim):
            extent, _, unit = bound.as_sql().partition("_")
            return unit, extent
        return "RANGE", bound.as_sql(context)


class Over:
    """The rows before each row, as aggregates over them need it.

    >>> from penstock.table.expressions import UNBOUNDED_RANGE, col
    >>> window = Over.partition_by(col("a")).order_by(col("rowtime")).preceding(UNBOUNDED_RANGE).alias("w")
    """

    @classmethod
    def order_by(cls, order_by: Expression[Any]) -> OverWindowPartitionedOrdered:
        """The column of times, by which rows are in order."""
        return OverWindowPartitionedOrdered(OverWindow(order=order_by))

    @classmethod
    def partition_by(cls, *partition_by: Expression[Any]) -> OverWindowPartitioned:
        """The columns whose values rows must share."""
        return OverWindowPartitioned(OverWindow(tuple(partition_by)))


@dataclass(frozen=True, eq=False)
class OverWindowPartitioned:
    """An over window without its order yet."""

    window: OverWindow

    def order_by(self, order_by: Expression[Any]) -> OverWindowPartitionedOrdered:
        """The column of times, by which rows are in order."""
        return OverWindowPartitionedOrdered(replace(self.window, order=order_by))


@dataclass(frozen=True, eq=False)
class OverWindowPartitionedOrdered:
    """An over window that may get bounds."""

    window: OverWindow

    def alias(self, alias: str) -> OverWindow:
        """The name by which `over(...)` knows the window."""
        return replace(self.window, name=alias)

    def preceding(self, preceding: Expression[Any]) -> OverWindowPartitionedOrderedPreceding:
        """How far back rows count: UNBOUNDED_ROW, UNBOUNDED_RANGE, row_interval(5) or lit(5).minutes."""
        return OverWindowPartitionedOrderedPreceding(replace(self.window, before=preceding))


@dataclass(frozen=True, eq=False)
class OverWindowPartitionedOrderedPreceding:
    """An over window with its first bound."""

    window: OverWindow

    def alias(self, alias: str) -> OverWindow:
        """The name by which `over(...)` knows the window."""
        return replace(self.window, name=alias)

    def following(self, following: Expression[Any]) -> OverWindowPartitionedOrderedPreceding:
        """Up to which row: CURRENT_ROW or CURRENT_RANGE."""
        return OverWindowPartitionedOrderedPreceding(replace(self.window, after=following))


def alias_of(expression: Expression[Any]) -> str:
    """The name of a window that an expression means."""
    if not isinstance(expression, Column):
        raise InvalidProgramError(f"a window is named by its alias, col('w'), got {expression}")
    return expression.column
