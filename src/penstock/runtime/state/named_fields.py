"""Objects of dataclasses and named tuples, saved with the names of their fields.

Pickle saves a named tuple, and some dataclasses with slots, by position, and sets what it finds without asking the
class. So a field that was added would be missing, or get the value of another one. Here values are restored by name,
into the class as it is now: fields that were added get their defaults. What does not fit is refused.
"""

from __future__ import annotations

import copyreg
import dataclasses
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from operator import methodcaller
from typing import Any

from penstock.common.exceptions import StateMismatchError

Reducer = Callable[[Any], Any]
"""What pickle calls for an object, in place of the object's `__reduce_ex__`."""

PROTOCOL = 5
_MOST_CLASSES = 4096
_MOST_FORMS = 64
_AS_USUAL = methodcaller("__reduce_ex__", PROTOCOL)
_HEAP_TYPE = 1 << 9
_STATE_OF_SLOTS = tuple(
    getattr(dataclasses, name) for name in ("_dataclass_getstate", "_dataclass_setstate") if hasattr(dataclasses, name)
)
"""What dataclasses themselves define for frozen classes with slots. They save by position."""

Reference = Callable[[Any], Any]
"""What is pickled in place of a class: something that becomes the class again."""


class FieldReducers(dict[Any, Reducer]):
    """A pickler's dispatch table: by the type of an object, how it is pickled.

    Objects of dataclasses are pickled after their values. That is quick, but it has no end if a value refers to the
    object. If `is_cyclic`, they are pickled before their values.
    """

    def __init__(self, reference: Reference, is_cyclic: bool = False) -> None:
        super().__init__()
        self._reference = reference
        self._is_cyclic = is_cyclic

    def __missing__(self, kind: Any) -> Reducer:
        if issubclass(kind, type):
            raise KeyError(kind)  # Pickle saves classes by name.
        if len(self) >= _MOST_CLASSES:
            self.clear()  # The classes of jobs that have ended must not stay for ever.
        self[kind] = reducer = self._made(kind) or _AS_USUAL
        return reducer

    def by_name(self, kind: Any) -> Reducer | None:
        """The reducer of a class whose objects are saved by the names of their fields; None for other classes."""
        reducer = self[kind]
        return reducer if isinstance(reducer, _ByName) else None

    def _made(self, kind: Any) -> Reducer | None:
        usual: Reducer | None = copyreg.dispatch_table.get(kind)
        if usual is not None or kind.__module__.partition(".")[0] == "penstock":
            return usual
        if _is_named_tuple(kind):
            return _NamedTuples(kind, self._reference)
        if _is_simple_dataclass(kind):
            return _Dataclasses(kind, self._reference, self._is_cyclic)
        return None


def _is_named_tuple(kind: Any) -> bool:
    """True if pickle would save the tuple itself, and nothing that the class has thought up."""
    return (
        issubclass(kind, tuple)
        and isinstance(getattr(kind, "_fields", None), tuple)
        and hasattr(kind, "_field_defaults")
        and _is_usual(kind, "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__")
        and _has_same_code(getattr(kind, "__getnewargs__", None), _GET_NEW_ARGS)
    )


_GET_NEW_ARGS: Any = namedtuple("_GetNewArgs", "a").__getnewargs__  # type: ignore[attr-defined]


def _has_same_code(one: Any, other: Any) -> bool:
    # Not the functions themselves: each named tuple has its own, and some were sent from another process.
    codes = [getattr(each, "__code__", None) for each in (one, other)]
    parts = [code and (code.co_code, code.co_names, code.co_consts) for code in codes]
    return parts[0] is not None and parts[0] == parts[1]


def _is_simple_dataclass(kind: Any) -> bool:
    """True if an object is what its attributes are: no base is written in C, and it is pickled as any object."""
    mro: tuple[Any, ...] = kind.__mro__
    return (
        dataclasses.is_dataclass(kind)
        and kind.__new__ is object.__new__
        and all(base is object or base.__flags__ & _HEAP_TYPE for base in mro)
        and _is_usual(kind, "__reduce_ex__", "__reduce__", "__getnewargs_ex__", "__getnewargs__")
        and _is_usual(kind, "__getstate__", "__setstate__", allowed=_STATE_OF_SLOTS)
    )


def _is_usual(kind: Any, *methods: str, allowed: Iterable[Any] = ()) -> bool:
    """True if the class has these methods from `object`, or not at all, or they are `allowed`."""
    return all(getattr(kind, name, None) in (getattr(object, name, None), *allowed) for name in methods)


class _Form:
    """The names of the values that follow in a pickle. It is pickled once, and becomes what takes the values."""

    def __init__(self, reference: Reference, *described: Any) -> None:
        self._reference = reference
        self._described = described

    def __call__(self, *_: Any) -> None:
        """Pickle wants something that can be called, and calls what becomes of this when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        make, kind, *names = self._described
        return make, (self._reference(kind), *names)


class _ByName:
    """Reduces the objects of one class."""

    def __call__(self, thing: Any) -> Any:
        raise NotImplementedError


class _NamedTuples(_ByName):
    def __init__(self, kind: Any, reference: Reference) -> None:
        self._form = _Form(reference, named_tuples_of, kind, kind._fields)

    def __call__(self, thing: Any) -> Any:
        return self._form, tuple(thing), getattr(thing, "__dict__", None) or None


class _Dataclasses(_ByName):
    def __init__(self, kind: Any, reference: Reference, is_cyclic: bool) -> None:
        self._kind = kind
        self._reference = reference
        self._fields = tuple(field.name for field in dataclasses.fields(kind))
        self._slots: list[str] = copyreg._slotnames(kind)  # type: ignore[attr-defined]
        self._has_dict = bool(kind.__dictoffset__)
        self._new = _Form(reference, maker_of, kind) if is_cyclic else None
        self._forms: dict[tuple[str, ...], _Form] = {}

    def __call__(self, thing: Any) -> Any:
        held = thing.__dict__ if self._has_dict else {}
        if self._slots:
            held = {**held, **{name: getattr(thing, name) for name in self._slots if hasattr(thing, name)}}
        names = tuple(held)
        form = self._forms.get(names) or self._form(names)
        if self._new is None:
            return form, tuple(held.values())
        return self._new, (), tuple(held.values()), None, None, form

    def _form(self, names: tuple[str, ...]) -> _Form:
        # Attributes besides the fields, and fields without a value, are rare: only then both lists are needed.
        described = (names,) if set(names) == set(self._fields) else (names, self._fields)
        form = _Form(self._reference, objects_of if self._new is None else restorer_of, self._kind, *described)
        if len(self._forms) < _MOST_FORMS:
            self._forms[names] = form
        return form


# --- reading: pickles name these functions, so they must stay where they are ------------------------------------------


def maker_of(kind: Any) -> Callable[[], Any]:
    """Makes objects of a class, without any attributes."""
    return partial(kind.__new__, kind)


@lru_cache(_MOST_CLASSES)
def named_tuples_of(kind: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    """Makes named tuples of values whose names were these."""
    now = getattr(kind, "_fields", None)
    if now == names:
        return lambda *values: tuple.__new__(kind, values)
    if now is None or not issubclass(kind, tuple):
        raise StateMismatchError(f"{_name_of(kind)} was a named tuple when the state was saved, and is none now")
    defaults: dict[str, Any] = kind._field_defaults
    _check(kind, names, now, {name for name in now if name in defaults})

    def make(*values: Any) -> Any:
        held = {**defaults, **dict(zip(names, values, strict=True))}
        return tuple.__new__(kind, [held[name] for name in now])

    return make


@lru_cache(_MOST_CLASSES)
def objects_of(kind: Any, names: tuple[str, ...], fields: tuple[str, ...] | None = None) -> Callable[..., Any]:
    """Makes objects of a dataclass of values whose names are `names`; `fields`, if other, were the fields then."""
    new, restore = kind.__new__, restorer_of(kind, names, fields)

    def make(*values: Any) -> Any:
        thing = new(kind)
        restore(thing, values)
        return thing

    return make


@lru_cache(_MOST_CLASSES)
def restorer_of(
    kind: Any, names: tuple[str, ...], fields: tuple[str, ...] | None = None
) -> Callable[[Any, tuple[Any, ...]], None]:
    """Gives an object of a dataclass its values; `names` and `fields` as in `objects_of`."""
    names = tuple(map(sys.intern, names))
    if not _is_usual(kind, "__setstate__", allowed=_STATE_OF_SLOTS):
        return lambda thing, values: thing.__setstate__(dict(zip(names, values, strict=True)))
    added = _added_fields(kind, names if fields is None else fields)
    if not added and kind.__dictoffset__ and not copyreg._slotnames(kind):  # type: ignore[attr-defined]
        return lambda thing, values: thing.__dict__.update(zip(names, values, strict=True))
    put = object.__setattr__  # The class may be frozen.

    def restore(thing: Any, values: tuple[Any, ...]) -> None:
        for name, value in zip(names, values, strict=True):
            put(thing, name, value)
        for field in added:
            put(thing, field.name, field.default_factory() if field.default is dataclasses.MISSING else field.default)

    return restore


def _added_fields(kind: Any, before: tuple[str, ...]) -> list[Any]:
    if not dataclasses.is_dataclass(kind):
        return []
    now = {field.name: field for field in dataclasses.fields(kind)}
    with_default = {
        name
        for name, field in now.items()
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    }
    _check(kind, before, tuple(now), with_default)
    return [field for name, field in now.items() if name not in before]


def _check(kind: Any, before: tuple[str, ...], now: tuple[str, ...], with_default: set[str]) -> None:
    """Raise if objects with the fields of before cannot become objects with the fields of now."""
    removed = [name for name in before if name not in now]
    unknown = [name for name in now if name not in before and name not in with_default]
    if unknown:
        raise StateMismatchError(
            f"{_name_of(kind)} has {_listed(unknown)}, which the saved objects do not have (they have "
            f"{', '.join(before)}), and which {'have' if len(unknown) > 1 else 'has'} no default; give new fields a "
            f"default, or a dataclass a __setstate__(self, values) that takes the saved values by name"
        )
    if removed:
        raise StateMismatchError(
            f"{_name_of(kind)} no longer has {_listed(removed)}, which the saved objects have; keep the field, or give "
            f"a dataclass a __setstate__(self, values) that takes the saved values by name"
        )


def _name_of(kind: Any) -> str:
    return f"class {kind.__module__}.{kind.__qualname__}"


def _listed(names: list[str]) -> str:
    return f"field{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"
