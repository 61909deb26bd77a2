"""Writes the Python source of expressions.

An expression becomes code and checks. The code is right if none of the checks is true; if one is, the expression is
NULL. So `(a + b) * c` checks each column once and not the sum again. A check may bind a name that the code uses (`:=`),
so the checks are written, in their order, wherever the code is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.codegen.rex import Call, FieldAccess, InputRef, Literal, Node, Sarg, Symbol, UserCall
from penstock.table.types import DataType


@dataclass(frozen=True)
class Code:
    """Python source of an expression: what it is, unless one of the checks is true."""

    text: str
    checks: tuple[str, ...] = ()


def nullable_text(code: Code) -> str:
    """One expression, None for NULL."""
    if not code.checks:
        return code.text
    return f"(None if {' or '.join(code.checks)} else {code.text})"


@dataclass
class Emitter:
    """Writes the code of nodes. `calls` says how each built-in function is written."""

    calls: dict[str, Callable[[Emitter, Call], Code]]
    context: Any
    constants: dict[str, Any] = field(default_factory=dict)
    """What the generated code refers to by name."""
    _temporaries: int = 0

    def constant(self, value: Any) -> str:
        """A name in the generated code for a value or a function."""
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def emit(self, node: Node) -> Code:
        match node:
            case InputRef(index=index):
                name = f"v{index}"
                return Code(name, (f"{name} is None",) if node.type.is_nullable else ())
            case Literal(value=value):
                return self.literal(value)
            case FieldAccess(row=row, index=index):
                inner = self.emit(row)
                return self.checked(f"{inner.text}[{index}]", inner.checks, node.type)
            case Call(function=name):
                if name not in self.calls:
                    raise UnsupportedFeatureError(f"the SQL function {name} is not supported")
                return self.calls[name](self, node)
            case UserCall():
                return self.user_call(node)
            case Symbol(name=name):
                raise UnsupportedFeatureError(f"the word {name} cannot be used as a value")
            case Sarg():
                raise UnsupportedFeatureError("a search argument can only be used by SEARCH")
        raise UnsupportedFeatureError(f"expressions such as {node} are not supported")

    def literal(self, value: Any) -> Code:
        if value is None:
            return Code("None", ("True",))
        if isinstance(value, (bool, int, str, bytes)):
            return Code(repr(value) if not isinstance(value, int) or value >= 0 else f"({value})")
        return Code(self.constant(value))

    def value(self, node: Node) -> str:
        """One expression, None for NULL."""
        return nullable_text(self.emit(node))

    def truth(self, node: Node) -> str:
        """One expression that Python takes for true exactly if the node is TRUE."""
        if isinstance(node, Call) and node.function in ("AND", "OR"):
            return "(" + f" {node.function.lower()} ".join([self.truth(operand) for operand in node.operands]) + ")"
        return self.value(node)

    def checked(self, text: str, checks: tuple[str, ...], data_type: DataType | None = None) -> Code:
        """Code that may be None even if none of the checks is true."""
        if data_type is not None and not data_type.is_nullable:
            return Code(text, checks)
        name = self.temporary()
        return Code(name, (*checks, f"({name} := {text}) is None"))

    def strict(self, function: Callable[..., Any], *operands: Node, may_be_null: bool = False, extra: str = "") -> Code:
        """A call with values that are not NULL; it is NULL if one of them is."""
        codes = [self.emit(operand) for operand in operands]
        text = f"{self.constant(function)}({', '.join([*(code.text for code in codes), *([extra] if extra else [])])})"
        checks = merged(codes)
        return self.checked(text, checks) if may_be_null else Code(text, checks)

    def lenient(self, function: Callable[..., Any], *operands: Node, data_type: DataType | None = None) -> Code:
        """A call that gets NULLs as None."""
        text = f"{self.constant(function)}({', '.join(self.value(operand) for operand in operands)})"
        return self.checked(text, (), data_type)

    def user_call(self, node: UserCall) -> Code:
        function = self.context.function_for(node.name, [operand.type for operand in node.operands], node.type)
        return self.lenient(function, *node.operands)


def merged(codes: list[Code]) -> tuple[str, ...]:
    """The checks of several codes, each once, in their order."""
    return tuple(dict.fromkeys(check for code in codes for check in code.checks))
