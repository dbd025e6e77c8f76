"""Messages about operands that are no tensors."""

from __future__ import annotations

from typing import Final

from ..types import PRELUDE, AdtType, StrType, TupleType, Type, show


def no_tensor(operator: str, written: str, operand: str, ty: Type) -> str:
    """Return the message about an operand that must be a tensor; `written` is the name of the
    operator as its users write it, where no symbol stands for it."""
    symbol = _SYMBOLS.get(operator)
    if symbol is None:
        return f"`{written}` takes a tensor as `{operand}`, not {show(ty)}"
    verb = "compares" if operator in _ORDERS else "takes"
    return f"`{symbol}` {verb} numbers and tensors, not {show(ty)}"


def instead_of_tensor(operator: str, operand: str, ty: Type) -> str | None:
    """Return the help for an operand that must be a tensor."""
    symbol = _SYMBOLS.get(operator)
    if operand == "key":
        return "pass a key first, `relay.random_key(seed)` or a part of `relay.random_split(key)`"
    if isinstance(ty, StrType):
        return _FORMATTED if operator == "mod" else _OF_STRINGS
    if isinstance(ty, AdtType) and ty.name == f"{PRELUDE}List":
        return _OF_LISTS.get(operator, _OF_LIST)
    if symbol is None:
        return None
    if isinstance(ty, TupleType) and len(ty.fields) > 1:
        ordered = f"`a[0] {symbol[0]} b[0] or a[0] == b[0] and a[1] {symbol} b[1]`"
        each = f"`(a[0] {symbol} x, a[1] {symbol} x)`"
        return f"do it to the items: {ordered if operator in _ORDERS else each}"
    if isinstance(ty, AdtType) and not ty.name.startswith(PRELUDE):
        return f"define `{_METHODS[symbol]}` in its class, or do it to the fields"
    return None


_ORDERS: Final = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_SYMBOLS: Final = {
    **_ORDERS,
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "mod": "%",
    "power": "**",
    "matmul": "@",
}
"""The symbols of Python that stand for operators."""

_METHODS: Final = {
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "**": "__pow__",
    "@": "__matmul__",
}

_OF_STRINGS: Final = (
    "strings know `==`, `+`, `in`, `len` and formats here: do the rest before the call"
)
_FORMATTED: Final = 'write an f-string: `f"{x:.3f}"`'
_OF_LIST: Final = "do it to each element, `[f(x) for x in xs]`, or to the tensor `relay.stack(xs)`"
_OF_LISTS: Final = {
    "logical_not": "whether a list is empty is `len(xs) == 0`",
    "multiply": "a list of `n` elements is `[x for _ in range(n)]`",
    "sort": "sort a tensor: `relay.sort(relay.stack(xs), 0)`",
}
