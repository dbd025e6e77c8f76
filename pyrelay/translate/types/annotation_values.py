"""The objects that annotations evaluate to, and why some are no types."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import types as python_types
import typing
from typing import Any, Final, final

from ... import annotations as written
from ...ir.dims import Dim
from ..source.definition import Definition, meaning
from ..source.unions import NEVER


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


ITERABLE_WAY: Final = "write `Iterable[tuple[Tensor[Float, (N, 3)], Tensor[Int, (N,)]]]`"
_NAMED: Final = (
    'write `type Void = Never`, or before Python 3.12 `Void = TypeAliasType("Void", Never)`'
)


def reason(value: Any, origin: Any) -> tuple[str, str | None]:
    """Return why an object is no annotation, and what to write instead."""
    name = getattr(value, "__name__", repr(value))
    module = (getattr(value, "__module__", "") or "").split(".")[0]
    if isinstance(meaning(value), Definition):
        return (
            "this is a function",
            f"write `Model[{name}]` for a model, `Fn[[A], B]` for a function",
        )
    if value in NEVER:
        return "it has no values, and as a data type it needs a name", _NAMED
    if value is typing.Any:
        return "the type of a parameter is known", "write its type; `Any` may stand for one size"
    if (getattr(value, "__module__", "") or "").startswith("torch.utils.data"):
        return "it does not say what the elements are", ITERABLE_WAY
    if module in ("torch", "numpy", "jax"):
        return "its shape and element type are missing", "write `Tensor[Float, (N, 3)]`"
    if value is written.Tensor:
        return "its shape and element type are missing", "write `Tensor[Float, (N, 3)]`"
    if value in (dict, set) or origin in (dict, set):
        instead = "write a tensor, a tuple, or a list: `list[Float]`"
        return "this collection is not in the language", instead
    if isinstance(value, python_types.UnionType) or origin is typing.Union:
        return "a union is not in the language", "write a function for each of the types"
    return next((why for known, why in _OF_PYTHON if known in (value, origin)), _NO_TYPE)


_FUNCTIONS: Final = ("functions have a type of their own", "write `Fn[[Float], Float]`")
_OF_PYTHON: Final[tuple[tuple[Any, tuple[str, str]], ...]] = (
    (tuple, ("the types of its fields are missing", "write `tuple[Float, Float]`")),
    (callable, _FUNCTIONS),
    (typing.Callable, _FUNCTIONS),
    (collections.abc.Callable, _FUNCTIONS),
)
_NO_TYPE: Final = ("it names no type of the language", None)


@final
class DimNames(dict[str, Any]):
    """A namespace in which an unknown name is a size, for shapes written as text."""

    def __missing__(self, name: str) -> Dim:
        return Dim.of(name)


def literal(value: Any) -> int | None:
    """Return the number that `Literal[3]` stands for."""
    if typing.get_origin(value) is not typing.Literal:
        return None
    given: tuple[Any, ...] = typing.get_args(value)
    is_one = len(given) == 1 and isinstance(given[0], int) and not isinstance(given[0], bool)
    return given[0] if is_one else None
