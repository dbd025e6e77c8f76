"""Checking, before every call, that the names a program captured still have their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CellType
from typing import Any

from ..source.optimizers import OptimizerGuard
from ..source.scope import MISSING, Guard


def checker(guards: Iterable[Guard | OptimizerGuard]) -> Callable[[], bool]:
    """Return a predicate: whether all guards hold.

    It runs before every call of a compiled program, so the usual case, that every name still has
    the very same value, is one written-out expression.
    """
    every = tuple(guards)
    if not every:
        return _always
    names: dict[str, Any] = {"missing": MISSING}
    tests: list[str] = []
    for i, guard in enumerate(every):
        if isinstance(guard, OptimizerGuard):
            names[f"g{i}"] = guard
            tests.append(f"g{i}.holds()")
            continue
        names |= {f"h{i}": guard.holder, f"v{i}": guard.value}
        is_cell = isinstance(guard.holder, CellType)
        now = f"h{i}.cell_contents" if is_cell else f"h{i}.get({guard.name!r}, missing)"
        names[f"t{i}"] = type(guard.value)
        tests.append(f"type({now}) is t{i}" if guard.varies else f"{now} is v{i}")
    same = eval(f"lambda: {' and '.join(tests)}", names)

    def hold() -> bool:
        try:
            if same():
                return True
        except ValueError:  # a name of an enclosing function that has no value now
            pass
        return all(guard.holds() for guard in every)

    return hold


def holds_always(check: Callable[[], bool]) -> bool:
    """Return whether a predicate has nothing to check."""
    return check is _always


def _always() -> bool:
    return True
