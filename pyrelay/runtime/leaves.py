"""Reading the tensors of host values whose types are known: one written-out function per type.

Walking nested tuples costs more than a small call; the generated function is a plain list display.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from ..ir.types import SizeType, TensorType, TupleType, Type

Reader: TypeAlias = Callable[[Sequence[Any]], list[Any]]
"""From values to the leaves inside their tuples, left to right."""


@lru_cache(maxsize=1024)
def leaf_reader(types: tuple[Type, ...]) -> Reader:
    """Give what reads the leaves of values of these types; what is no tuple is a leaf."""
    parts: list[str] = []
    pending = [(f"v[{i}]", ty) for i, ty in reversed(list(enumerate(types)))]
    while pending:
        path, ty = pending.pop()
        if isinstance(ty, TupleType):
            fields = enumerate(ty.fields)
            pending += reversed([(f"{path}[{i}]", f) for i, f in fields])
        else:
            parts.append(path)
    return eval(f"lambda v: [{', '.join(parts)}]", {})


def has_only_numbers(ty: Type) -> bool:
    """Tell whether a type is made of tensors, sizes and tuples alone."""
    pending = [ty]
    while pending:
        match pending.pop():
            case TupleType(fields):
                pending += fields
            case TensorType() | SizeType():
                pass
            case _:
                return False
    return True


def first_leaf(tree: Any) -> Any:
    """Give the first leaf of nested tuples, None if there is none before an empty tuple."""
    while type(tree) is tuple:
        tree = tree[0] if tree else None
    return tree
