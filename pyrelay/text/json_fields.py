"""The types of the fields of nodes, read off their dataclasses: a modified document must
not make nodes that no other code would."""

from __future__ import annotations

import dataclasses
import types as python_types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from ..diagnostics.source import Span
from ..ir import dims, expr, module, transforms, types
from ..ir.constant import constant_type
from ..ir.op import Op

Check: TypeAlias = Callable[[Any], bool]

_OWNERS: Final = (dims, types, transforms, expr, module)
_NAMES: Final = {
    **{n: v for owner in _OWNERS for n, v in vars(owner).items()},
    "Span": Span,
    "Op": Op,
}


def check_fields(node: Any) -> None:
    """Raise TypeError if a field of a node holds a value of another type."""
    for name, fits in _checks(type(node)).items():
        if not fits(getattr(node, name)):
            raise TypeError(f"the field `{name}` of a {type(node).__name__}")
    if isinstance(node, types.DType) and types.TEXT_DTYPES.get(node.name) != node:
        raise TypeError(f"there is no dtype {node.name} of {node.bits} bits")
    if isinstance(node, dims.DimOp) and node.kind != "max" and node.right == dims.ZERO:
        raise TypeError("a size that is divided by 0")
    if isinstance(node, dims.Dim) and not node.is_normal:
        raise TypeError("the terms of a Dim, which are not in their order")
    if isinstance(node, expr.Constant) and not _is_of_its_type(node):
        raise TypeError("a Constant of another type than its value")


def _is_of_its_type(constant: expr.Constant) -> bool:
    ty = constant.ty
    return ty is None or constant_type(constant.value, ty) == ty


@cache
def _checks(cls: type) -> Mapping[str, Check]:
    if cls is dims.Dim:
        return {"terms": _check(tuple[tuple[tuple[dims.DimAtom, ...], int], ...])}
    hints = get_type_hints(cls, _NAMES, _NAMES)
    return {f.name: _check(hints[f.name]) for f in dataclasses.fields(cls)}


def _is_span(value: Any) -> bool:
    """Return whether a value is a place in a text."""
    if not isinstance(value, Span):
        return False
    right = (type(value.start), type(value.end), type(value.because)) == (int, int, str)
    return right and 0 <= value.start <= value.end


def _check(hint: Any) -> Check:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda _: True
    if origin in (Union, python_types.UnionType):
        options = [_check(a) for a in args]
        return lambda value: any(fits(value) for fits in options)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        inner = _check(args[0])
        return lambda value: isinstance(value, tuple) and all(map(inner, value))
    if origin is tuple:
        parts = [_check(a) for a in args]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(parts)
            and all(fits(v) for fits, v in zip(parts, value, strict=True))
        )
    if origin is Mapping:
        key, value = map(_check, args)
        return lambda found: (
            isinstance(found, Mapping) and all(map(key, found)) and all(map(value, found.values()))
        )
    if hint is Span:
        return _is_span
    wanted: Any = origin or hint
    if wanted is int:
        return lambda value: type(value) is int
    return lambda value: isinstance(value, wanted)
