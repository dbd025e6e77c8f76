"""The objects that annotations evaluate to."""

from __future__ import annotations

import ast
import builtins
import typing
from typing import Any, Final, final

from ...ir.dims import Dim


def evaluate(node: ast.expr | str, namespace: dict[str, Any]) -> Any:
    """Return the object that an annotation stands for where the names of a namespace are seen.
    Raises what evaluating it raises."""
    while isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = node.value
    if isinstance(node, str):
        node = ast.parse(node.strip(), mode="eval").body
    code = compile(ast.Expression(node), "<annotation>", "eval")
    names = _Names(namespace)
    for name in _sizes_in(node):
        if isinstance(namespace.get(name), typing.TypeVar):
            names[name] = Dim.of(name)
    return eval(code, {"__builtins__": builtins}, names)


def _sizes_in(node: ast.expr) -> frozenset[str]:
    """Return the names that an annotation computes with: type parameters, which Python cannot add,
    are sizes there."""
    sums = (n for n in ast.walk(node) if isinstance(n, ast.BinOp) and type(n.op) in _ARITHMETIC)
    return frozenset(n.id for s in sums for n in (s.left, s.right) if isinstance(n, ast.Name))


_ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


@final
class _Names(dict[str, Any]):
    """A copy of a namespace to evaluate in, that keeps the fallback of the original."""

    def __init__(self, original: dict[str, Any]) -> None:
        super().__init__(original)
        self._original = original

    def __missing__(self, name: str) -> Any:
        if name in vars(builtins):
            return vars(builtins)[name]
        return self._original[name]
