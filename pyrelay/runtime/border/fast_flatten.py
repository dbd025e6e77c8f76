"""Reading the tensors of host values whose types are known: one written-out function per type.

Walking nested tuples costs more than a small call; the generated function is a plain list display.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from ...ir.types import SizeType, TensorType, TupleType, Type

Reader: TypeAlias = Callable[[Sequence[Any]], list[Any]]
"""From values to the leaves inside their tuples, left to right."""

Key: TypeAlias = tuple[Any, ...]


@lru_cache(maxsize=1024)
def leaf_reader(types: tuple[Type, ...]) -> Reader:
    """Return the reader of the leaves of values of these types; what is no tuple is a leaf."""
    parts = [path for i, ty in enumerate(types) for path in paths(ty, f"v[{i}]")]
    return eval(f"lambda v: [{', '.join(parts)}]", {})


def paths(ty: Type, whole: str) -> Iterator[str]:
    """Yield the text of each leaf of a value of a type, whose own is `whole`."""
    pending = [(whole, ty)]
    while pending:
        path, current = pending.pop()
        if isinstance(current, TupleType):
            fields = enumerate(current.fields)
            pending += reversed([(f"{path}[{i}]", f) for i, f in fields])
        else:
            yield path


def key_reader(types: tuple[Type, ...], models: int) -> Callable[[Sequence[Any]], Key] | None:
    """Return the reader of the key of a call with arguments of these types: of a tensor its dtype,
    shape, device and layout; of the leading parts of models, which have the shapes they were made
    with, dtype and device of the first tensor. It raises AttributeError for what has none of these.

    None where an argument may be anything but a tensor.
    """
    parts: list[str] = []
    for index, ty in enumerate(types):
        name = f"v[{index}]"
        if index >= models:
            if not isinstance(ty, TensorType) or not ty.rank:
                return None
            parts.append(f"{name}.dtype, {name}.shape, {name}.device, {name}.layout")
            continue
        while isinstance(ty, TupleType) and ty.fields:
            ty, name = ty.fields[0], f"{name}[0]"
        if isinstance(ty, TensorType):
            parts.append(f"{name}.dtype, {name}.device")
    return eval(f"lambda v: ({', '.join([*parts, ''])})", {}) if parts else None


def has_only_numbers(ty: Type) -> bool:
    """Return whether a type is made of tensors, sizes and tuples of these alone."""
    pending = [ty]
    while pending:
        match pending.pop():
            case TupleType(fields) if fields:
                pending += fields
            case TensorType() | SizeType():
                pass
            case _:
                return False
    return True


def first_leaf(tree: Any) -> Any:
    """Return the first leaf of nested tuples, None if there is none before an empty tuple."""
    while type(tree) is tuple:
        tree = tree[0] if tree else None
    return tree
