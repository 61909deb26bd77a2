"""Which functions of windows may be computed from partial results, however the elements are grouped.

A partial result of some elements can take their place only if nothing depends on the grouping of elements, and, where
partial results overtake each other, on their order. That is never assumed: it must follow from what the function does
and from the declared type of its elements. Sums, minima and maxima of whole numbers, minima and maxima of text, and
fields that are part of the key, qualify. Fields of the first or the last element qualify where the order is kept. Sums
of floats do not: they depend on the grouping.

What a function does is found out by calling it once with symbols in the place of elements, if that has no visible
effect (`lowering.purity`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from types import MethodType
from typing import Any, Literal, NoReturn

from penstock.common.typeinfo import BasicType, BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.datastream.fields import DeclaredKey, FieldAggregation, FieldKey
from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.lowering.purity import pure_function
from penstock.graph.descriptions import (
    AccumulatorMerge,
    FilterDescription,
    MergeKind,
    SourceDescription,
    WatermarksDescription,
)
from penstock.graph.transformations import (
    PartitionTransformation,
    PhysicalTransformation,
    Transformation,
    UnionTransformation,
)

_Kind = Literal["whole", "text", "boolean", "other"]
_KEPT: dict[type | None, _Kind] = {int: "whole", str: "text", bool: "boolean"}
"""The kinds of keys that a declared type keeps as they are, by their types in Python."""
_KINDS: dict[BasicType, _Kind] = {
    BasicType.BYTE: "whole",
    BasicType.SHORT: "whole",
    BasicType.INT: "whole",
    BasicType.LONG: "whole",
    BasicType.STRING: "text",
    BasicType.BOOLEAN: "boolean",
}


class _NotProven(Exception):
    """Whether order and grouping matter is not known."""


def merge_of(
    function: AggregateFunction, selector: Callable[[Any], Any], elements: Transformation
) -> AccumulatorMerge | None:
    """How to merge two accumulators into that of all elements, in any order; None if that is not known."""
    try:
        kinds, has_fields = _kinds_of(elements), isinstance(elements.output_type, (TupleTypeInfo, RowTypeInfo))
        keys = _key_fields(selector, kinds, has_fields)
        created = _called(function.create_accumulator)
        is_tuple = type(created) is tuple
        initial = created if is_tuple else (created,)
        held = [_Symbol("held", at, _kind_of_constant(each)) for at, each in enumerate(initial)]
        added = _called(function.add, _element("value", kinds, has_fields), _whole(held, is_tuple))
        results = added if is_tuple else (added,)
        if type(results) is not tuple or len(results) != len(initial) or any(each.kind == "other" for each in held):
            return None
        return AccumulatorMerge(tuple(_merge_of(each, at, initial, keys) for at, each in enumerate(results)), is_tuple)
    except Exception:  # Whatever goes wrong with a symbol in the place of an element: then nothing is known.
        return None


def merges_alike(function: AggregateFunction, merge: AccumulatorMerge) -> bool:
    """True if it is known that the function's own `merge`, which windows that merge call, gives what `merge` does."""
    try:
        created = _called(function.create_accumulator)
        kinds = [_kind_of_constant(each) for each in (created if merge.is_tuple else (created,))]
        both = (_element(what, kinds, merge.is_tuple) for what in ("held", "value"))
        merged = _called(function.merge, *both)
        results = merged if merge.is_tuple else (merged,)
        return (
            type(results) is tuple
            and len(results) == len(kinds)
            and all(
                _is_merged(each, at, kind) for at, (each, kind) in enumerate(zip(results, merge.kinds, strict=True))
            )
        )
    except Exception:  # As above.
        return False


def reduces_in_any_grouping(
    function: ReduceFunction | Callable[[Any, Any], Any],
    selector: Callable[[Any], Any],
    elements: Transformation,
    keeps_order: bool,
) -> bool:
    """True if elements may be reduced in any grouping and, unless `keeps_order`, in any order."""
    try:
        if type(function) is FieldAggregation:
            return _is_free_aggregation(function, selector, elements, keeps_order)
        kinds, is_tuple = _kinds_of(elements), isinstance(elements.output_type, TupleTypeInfo)
        if isinstance(elements.output_type, RowTypeInfo):
            return False
        keys = _key_fields(selector, kinds, is_tuple)
        reduce = function.reduce if isinstance(function, ReduceFunction) else function
        reduced = _called(reduce, _element("held", kinds, is_tuple), _element("value", kinds, is_tuple))
        results = reduced if is_tuple else (reduced,)
        return (
            type(results) is tuple
            and len(results) == len(kinds)
            and all(_is_free(each, at, keys, keeps_order) for at, each in enumerate(results))
        )
    except Exception:  # As above.
        return False


def _is_free_aggregation(
    function: FieldAggregation, selector: Callable[[Any], Any], elements: Transformation, keeps_order: bool
) -> bool:
    kinds, type_info = _kinds_of(elements), elements.output_type
    names = type_info.get_field_names() if isinstance(type_info, RowTypeInfo) else []
    field = names.index(function.field) if isinstance(function.field, str) else range(len(kinds))[function.field]
    if not keeps_order:
        keys = _key_fields(selector, kinds, isinstance(type_info, (TupleTypeInfo, RowTypeInfo)), names)
        if function.kind not in ("sum", "min", "max") or any(at not in keys for at in range(len(kinds)) if at != field):
            return False
    return kinds[field] == "whole" or (function.kind != "sum" and kinds[field] == "text")


# --- what elements are -----------------------------------------------------------------------------------------------


def _kinds_of(elements: Transformation) -> list[_Kind]:
    """The kinds of the fields that elements have, if they are sure to have their declared type."""
    if not _have_declared_form(elements, elements.output_type):
        raise _NotProven
    type_info = elements.output_type
    types = type_info.get_field_types() if isinstance(type_info, (TupleTypeInfo, RowTypeInfo)) else [type_info]
    return [_KINDS.get(each._basic_type, "other") if isinstance(each, BasicTypeInfo) else "other" for each in types]


def _have_declared_form(transformation: Transformation, type_info: TypeInformation | None) -> bool:
    """True if all elements were given the form of `type_info` where they were emitted. Sources emit what they read."""
    match transformation:
        case PartitionTransformation() | UnionTransformation():
            return all(_have_declared_form(each, type_info) for each in transformation.inputs)
        case PhysicalTransformation(operator=FilterDescription() | WatermarksDescription()):
            return all(_have_declared_form(each, type_info) for each in transformation.inputs)
        case PhysicalTransformation(operator=SourceDescription()):
            return False
        case PhysicalTransformation():
            return type_info is not None and transformation.output_type == type_info
    return False


def _key_fields(
    selector: Callable[[Any], Any], kinds: list[_Kind], has_fields: bool, names: list[str] | None = None
) -> set[int]:
    """The fields that are the same for all elements of a key: their equal values cannot be distinguished."""
    if isinstance(selector, DeclaredKey):
        found = _key_fields(selector.select, kinds, has_fields, names)
        return found if [kinds[field] for field in found] == [_KEPT.get(selector.kept_kind)] else set()
    try:
        if isinstance(selector, FieldKey):
            places = [(names or []).index(each) if isinstance(each, str) else each for each in selector.fields]
            picked: Any = tuple(_element("value", kinds, has_fields)[place] for place in places)
        elif isinstance(selector, itemgetter):
            picked = selector(_element("value", kinds, has_fields))
        else:
            picked = _called(selector, _element("value", kinds, has_fields))
    except Exception:  # A key that is computed.
        return set()
    fields = picked if type(picked) is tuple else (picked,)
    bare = (each for each in fields if isinstance(each, _Symbol) and each.what == "value" and each.kind != "other")
    return {each.field for each in bare}


# --- symbols ---------------------------------------------------------------------------------------------------------

_What = Literal["held", "value", "sum", "min", "max", "computed"]


class _Opaque:
    """What a function gets in the place of a value. Every attempt to learn something from it raises."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise _NotProven

    __bool__ = __hash__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = __call__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse
    __int__ = __float__ = __index__ = __complex__ = _refuse


class _Symbol(_Opaque):
    """A field of what is held or of what is added to it, or what was computed from these.

    `sum`, `min` and `max` are of the held `field` and of something that depends on the added element alone: on its
    field of that number and nothing else, if `is_of_field`.
    """

    __slots__ = ("field", "is_of_field", "kind", "what")

    def __init__(self, what: _What, field: int, kind: _Kind, is_of_field: bool = False) -> None:
        self.what = what
        self.field = field
        self.kind = kind
        self.is_of_field = is_of_field

    def __add__(self, other: Any) -> _Symbol:
        return _combined("sum", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> _Symbol:
        # What is held, less something, is a sum as well.
        return _combined("sum", self, -other if isinstance(other, _Symbol) else other)

    def __rsub__(self, other: Any) -> _Symbol:
        return _combined("sum", -self, other)

    def __mul__(self, other: Any) -> _Symbol:
        return _of_element(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> _Symbol:
        return _of_element(self, 1)


class _Fields(_Opaque):
    """A tuple of symbols, or a row."""

    def __init__(self, symbols: list[_Symbol]) -> None:
        self._symbols = symbols

    def __getitem__(self, at: int) -> _Symbol:
        if type(at) is not int:
            raise _NotProven
        return self._symbols[at]

    def __iter__(self) -> Iterator[_Symbol]:  # type: ignore[override]
        return iter(self._symbols)


def _element(what: _What, kinds: list[_Kind], has_fields: bool) -> Any:
    return _whole([_Symbol(what, at, kind) for at, kind in enumerate(kinds)], has_fields)


def _whole(symbols: list[_Symbol], has_fields: bool) -> Any:
    return _Fields(symbols) if has_fields else symbols[0]


def _kind_of_constant(value: Any) -> _Kind:
    return "whole" if type(value) is int else "text" if type(value) is str else "other"


def _of_element(*operands: Any) -> _Symbol:
    """A whole number that depends on the added element alone."""
    for each in operands:
        is_whole = each.kind == "whole" if isinstance(each, _Symbol) else type(each) is int
        if not is_whole or (isinstance(each, _Symbol) and each.what not in ("value", "computed")):
            raise _NotProven
    return _Symbol("computed", -1, "whole")


def _combined(what: Literal["sum", "min", "max"], one: Any, other: Any) -> _Symbol:
    held, added = (one, other) if _is_of_held(one) else (other, one)
    if not _is_of_held(held):
        return _of_element(one, other)
    kind = added.kind if isinstance(added, _Symbol) else _kind_of_constant(added)
    if held.kind != kind or kind not in (("whole",) if what == "sum" else ("whole", "text")):
        raise _NotProven
    if isinstance(added, _Symbol) and added.what not in ("value", "computed"):
        raise _NotProven  # Both are held.
    if held.what not in ("held", what):
        raise _NotProven
    is_of_field = held.what == "held" and isinstance(added, _Symbol) and added.what == "value"
    return _Symbol(what, held.field, kind, is_of_field and added.field == held.field)


def _is_of_held(value: Any) -> bool:
    return isinstance(value, _Symbol) and value.what not in ("value", "computed")


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns for symbols; raises unless calling it has no other effect."""
    if isinstance(function, MethodType):
        function, arguments = function.__func__, (_Opaque(), *arguments)
    pure = pure_function(function, {each: partial(_combined, each) for each in ("min", "max")})
    if pure.tests_none:
        raise _NotProven
    return pure.call(*arguments)


# --- what was found --------------------------------------------------------------------------------------------------


def _merge_of(result: Any, at: int, initial: tuple[Any, ...], keys: set[int]) -> MergeKind:
    """How a field of two accumulators is merged."""
    if not isinstance(result, _Symbol):
        if _kind_of_constant(result) == "other":
            raise _NotProven
        return "any"
    match result.what:
        case "held" if result.field == at:
            return "any"  # Nothing is ever added.
        case "value" if result.field in keys:
            return "any"
        case "sum" if result.field == at and initial[at] == 0:
            return "sum"
        case "min" if result.field == at:
            return "min"
        case "max" if result.field == at:
            return "max"
    raise _NotProven


def _is_free(result: Any, at: int, keys: set[int], keeps_order: bool) -> bool:
    """True if a field of what elements are reduced to does not depend on grouping and, unless it is kept, on order."""
    if not isinstance(result, _Symbol) or result.field != at:
        return False
    return keeps_order or at in keys if result.what in ("held", "value") else result.is_of_field


def _is_merged(result: Any, at: int, kind: MergeKind) -> bool:
    """True if a field of what two accumulators are merged to is of that kind."""
    if not isinstance(result, _Symbol) or result.field != at:
        return False
    return result.what in ("held", "value") if kind == "any" else result.what == kind and result.is_of_field
