"""Checking, before every call, that the names a program captured still have their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import CellType
from typing import Any, Final, final

from ..source.optimizers import OptimizerGuard
from ..source.scope import MISSING, Guard


def _always() -> bool:
    return True


@final
class Check:
    """Whether all guards hold.

    It is looked at before every call of a compiled program, so the usual case, that every name
    still has the very same value, is one written-out expression.
    """

    __slots__ = ("_guards", "same")

    def __init__(self, guards: Iterable[Guard | OptimizerGuard]) -> None:
        self._guards: Final = tuple(guards)
        self.same: Final[Callable[[], bool]] = _written_out(self._guards)
        """Returns whether every name has the very same value. Raises ValueError or KeyError where
        one has none now."""

    def __call__(self) -> bool:
        """Return whether every name has its value, or one that does as well."""
        try:
            if self.same():
                return True
        except (KeyError, ValueError):
            pass
        return all(guard.holds() for guard in self._guards)

    @property
    def holds_always(self) -> bool:
        """Whether there is nothing to look at."""
        return not self._guards


def _written_out(guards: Sequence[Guard | OptimizerGuard]) -> Callable[[], bool]:
    if not guards:
        return _always
    names: dict[str, Any] = {}
    known: dict[int, str] = {}

    def name(value: object) -> str:
        found = known.setdefault(id(value), f"n{len(known)}")
        names[found] = value
        return found

    tests: dict[str, None] = {}  # functions that call each other capture the same names
    for guard in guards:
        if isinstance(guard, OptimizerGuard):
            tests[f"{name(guard)}.holds()"] = None
            continue
        holder = name(guard.holder)
        is_cell = isinstance(guard.holder, CellType)
        now = f"{holder}.cell_contents" if is_cell else f"{holder}[{guard.name!r}]"
        if guard.varies:
            tests[f"type({now}) is {name(type(guard.value))}"] = None
        elif guard.value is MISSING and not is_cell:
            tests[f"{guard.name!r} not in {holder}"] = None
        else:
            tests[f"{now} is {name(guard.value)}"] = None
    return eval(f"lambda: {' and '.join(tests)}", names)


UNGUARDED: Final = Check(())
"""The check where there is nothing to look at."""
