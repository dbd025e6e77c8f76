"""The view of a program on the table: the operators whose calls it must dispatch.

A program is compiled for a view. What a call's keys are, but for the dtypes of its operands, is
known for the whole program when it is called; so of each registration there is left the set of
dtypes and classes that a call must have, or it cannot apply at all. Calls that nothing can apply
to are compiled as if there were no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, final

from ..dataclass import dataclass
from ..ir.expr import Call, type_of
from ..ir.module import Module
from ..ir.op import Op, ShapeBehaviour
from ..ir.traverse import post_order
from ..ir.types import DType, SizeType, TensorType, Type, int64, subtypes
from .keys import Key, keys_of_dtypes
from .registry import Registration, Table
from .state import State

Signature: TypeAlias = tuple[Op, frozenset[Key]]
"""An operator, and the dtypes and classes of a call of it."""
Need: TypeAlias = frozenset[Key]
"""The dtypes and classes that a call must have."""


@final
@dataclass(frozen=True, slots=True)
class View:
    """The entries for any operator, and those for single ones."""

    fallbacks: frozenset[Need] = frozenset()
    operators: frozenset[tuple[Op, frozenset[Need]]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.fallbacks or self.operators)

    def concerns(self, op: Op) -> bool:
        """Return whether some call of an operator may be dispatched."""
        return bool(self.fallbacks) or self.names(op)

    def names(self, op: Op) -> bool:
        """Return whether some call of an operator may have an implementation that is for it
        alone."""
        return any(op is other for other, _ in self.operators)

    def applies_to(self, call: Call) -> bool:
        """Return whether a call of an operator may be dispatched."""
        op = call.callee
        if not isinstance(op, Op) or not self.concerns(op):
            return False
        have = frozenset(dtype_keys(call))
        own = (needs for other, needs in self.operators if other is op)
        return any(need <= have for needs in (self.fallbacks, *own) for need in needs)


NOTHING: Final = View()
"""The view where nothing can apply."""


def view_of(table: Table, state: State, device: Key, calls: Iterable[Signature]) -> View:
    """Return the part of the table that can matter to a program on a device that has such calls."""
    have = frozenset((device, *state.included)) - state.excluded
    found: dict[Op | None, frozenset[Need]] = {
        op: frozenset(
            frozenset(r.keys) - have
            for r in registrations
            if r not in state.running and _can_apply(r, have, state)
        )
        for op, registrations in table.by_operator.items()
    }
    fallbacks: set[Need] = set()
    own: dict[Op, set[Need]] = {}
    for op, keys in calls:
        fallbacks.update(n for n in found.get(None, ()) if n <= keys)
        if needs := {n for n in found.get(op, ()) if n <= keys}:
            own.setdefault(op, set()).update(needs)
    return View(frozenset(fallbacks), frozenset((op, frozenset(n)) for op, n in own.items()))


def _can_apply(registration: Registration, have: Need, state: State) -> bool:
    """Return whether a call with the right dtypes gets an implementation."""
    return all(k in have or (k.is_of_dtype and k not in state.excluded) for k in registration.keys)


def calls_of(module: Module) -> Iterator[Signature]:
    """Return the calls of operators in a module: what there is to know of them before they run."""
    for function in module.functions.values():
        for node in post_order(function):
            if isinstance(node, Call) and isinstance(node.callee, Op):
                yield node.callee, frozenset(dtype_keys(node))


def dtype_keys(call: Call) -> tuple[Key, ...]:
    """Return the keys that a call has of the dtypes of all its operands, data included; a factory,
    or a call without a tensor, those of its result."""
    op, types = call.callee, [type_of(a) for a in call.args]
    is_factory = isinstance(op, Op) and op.shape is ShapeBehaviour.FACTORY
    found = () if is_factory else tuple(_dtypes(types))
    return keys_of_dtypes(found or tuple(_dtypes([type_of(call)])))


def _dtypes(types: Iterable[Type]) -> Iterable[DType]:
    for ty in types:
        for part in subtypes(ty):
            match part:
                case SizeType():
                    yield int64
                case TensorType(dtype=DType() as dtype):
                    yield dtype
                case _:
                    pass
