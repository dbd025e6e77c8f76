"""Which operators give results in storage of their own, or can write them into an operand."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ..op import Contraction, Host, Library, MadeOf, Op, Pointwise, Reduction, View


@lru_cache(maxsize=1024)
def makes_storage(op: Op) -> bool:
    """Return whether results of the operator never share storage with an operand, or with anything
    else that lives on."""
    match op.lowering:
        case Library(is_fresh=is_fresh) | Reduction(is_fresh=is_fresh):
            return is_fresh
        case Contraction(is_fresh=is_fresh):
            return is_fresh
        case Pointwise(body):
            return _computes(body, len(op.params))
        case View() | Host() | MadeOf():
            return False


def overwritten_operand(op: Op) -> int | None:
    """Return the operand into which an operator can write its result, if there is one."""
    return op.lowering.overwrites if isinstance(op.lowering, Library) else None


def _computes(body: Callable[..., Any], count: int) -> bool:
    """Return whether a pointwise body never gives an operand as it came."""
    args = [_Operand() for _ in range(count)]
    try:
        return body(_Probe(), *args) not in args
    except (TypeError, AttributeError):  # it looks into an attribute
        return False


class _Operand:
    """Stands for an operand or an attribute."""


class _Probe:
    """Arithmetic whose every result is new, but for what may have nothing to do."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return (lambda value, *_: value) if name in _MAY_KEEP else lambda *_: object()


_MAY_KEEP: Final = frozenset({"cast", "floor", "ceil", "round"})
"""Casts to the same dtype and roundings of integers give the operand itself."""
