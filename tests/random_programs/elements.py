"""The kinds of elements that random programs have: immutable ones, those that functions can change, and classes."""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = '''
class Item:
    """An element of a class: plain attributes, and a property that writes one of them."""

    def __init__(self, k, n):
        self.k = k
        self.n = n

    @property
    def double(self):
        return self.n * 2

    @double.setter
    def double(self, value):
        self.n = value // 2

    def __repr__(self):
        return f"Item({self.k}, {self.n})"


class Slotted:
    __slots__ = ("k", "n")

    def __init__(self, k, n):
        self.k = k
        self.n = n

    def __repr__(self):
        return f"Slotted({self.k}, {self.n})"


@dataclass
class Data:
    k: int
    n: int
    log: list = field(default_factory=list)
'''


@dataclass(frozen=True)
class Kind:
    """How the text of a program handles an element: `v` stands for it, `k` and `n` for a small and a large number."""

    name: str
    key: str
    number: str
    new: str
    changes: tuple[str, ...] = ()
    """Statements that change an element in place; `x` stands for a number."""

    def key_of(self, v: str) -> str:
        return self.key.format(v=v)

    def number_of(self, v: str) -> str:
        return self.number.format(v=v)

    def made(self, v: str, k: str, n: str) -> str:
        """An expression for a new element; `v` is one whose parts it may share."""
        return self.new.format(v=v, k=k, n=n)


KINDS = [
    Kind("number", "{v} % 5", "{v}", "{n}"),
    Kind("pair", "{v}[0]", "{v}[1]", "({k}, {n})"),
    Kind("triple", "{v}[0]", "{v}[1]", "({k}, {n}, {v}[2])", ("{v}[2].append({x})", "{v}[2][:] = [{x}]")),
    Kind("list", "{v}[0]", "{v}[1]", "[{k}, {n}]", ("{v}[1] = {x}", "{v}.append({x})")),
    Kind("dict", '{v}["k"]', '{v}["n"]', '{{"k": {k}, "n": {n}}}', ('{v}["n"] = {x}', "{v}.update(last={x})")),
    Kind("item", "{v}.k", "{v}.n", "Item({k}, {n})", ("{v}.n = {x}", "{v}.double = {x}", "{v}.late = {x}")),
    Kind("slotted", "{v}.k", "{v}.n", "Slotted({k}, {n})", ("{v}.n = {x}",)),
    Kind("data", "{v}.k", "{v}.n", "Data({k}, {n}, {v}.log)", ("{v}.log.append({x})", "{v}.n = {x}")),
]

FIRST = {"triple": "({k}, {n}, [])", "data": "Data({k}, {n})"}
"""How the first elements are made of the kinds whose new elements share parts with others."""


def first_element(kind: Kind, k: int, n: int) -> str:
    return FIRST.get(kind.name, kind.new).format(v="None", k=k, n=n)
