"""When tensors are needed for the last time: those that the body of a function binds on its one way
from its beginning to its end, outside of loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from ...ir.expr import Binding, Call, Expr, Function, Tuple, TupleGet, Var, type_of
from ...ir.traverse import free_vars, spine
from ...ir.types import AdtType, Type, subtypes
from .c_types import is_tensor
from .escapes import has_tensors


@final
class Lifetimes:
    """The last uses of what a function binds. `is_kernel` says whether a call is one of a kernel,
    whose results are new tensors; `keeps_no` whether the result of a call shares nothing with its
    arguments that do not escape; `escapes` whether a variable lies on the heap."""

    def __init__(
        self,
        function: Function,
        is_kernel: Callable[[Expr], bool],
        keeps_no: Callable[[Expr], bool],
        escapes: Callable[[Var], bool],
    ) -> None:
        self._is_kernel: Final = is_kernel
        self._keeps_no: Final = keeps_no
        self._escapes: Final = escapes
        blocks, end = spine(function.body)
        self._bindings: Final = [b for block in blocks for b in block.bindings]
        self._values: Final = {b.var: b.value for b in self._bindings}
        self._params: Final = frozenset(function.params)
        self._used: Final[list[tuple[Var, ...]]] = [free_vars(b.value) for b in self._bindings]
        self._used.append(free_vars(end))
        self._places: Final = {b.var: place for place, b in enumerate(self._bindings)}
        self._last: Final[dict[Var, int]] = {}
        kept: set[Var] = set(self._used[-1])
        for place, binding in enumerate(self._bindings):
            self._last.update(dict.fromkeys(self._used[place], place))
            if not (is_kernel(binding.value) or keeps_no(binding.value)):
                kept.update(self._used[place])
        self._kept: Final = frozenset(kept)
        """The variables whose elements others may share."""

    def ended(self, binding: Binding) -> Iterator[Var]:
        """Yield the tensors that a binding is the last to need, and whose memory nothing shares."""
        place = self._places.get(binding.var)
        for var in () if place is None else self._used[place]:
            is_made = is_tensor(type_of(var)) and self._is_kernel(self._values.get(var, var))
            is_last = self._last[var] == place and var not in self._kept
            if is_made and is_last and not self._escapes(var):
                yield var

    def needs_no_heap_behind(self, call: Call) -> bool:
        """Return whether nothing that was on the heap before a call is needed after it."""
        places = [n for n, b in enumerate(self._bindings) if b.value is call]
        if not places:
            return False
        (place,) = places
        before = {b.var for b in self._bindings[:place]}
        after = {var for used in self._used[place + 1 :] for var in used if var in before}
        return all(self._is_off_heap(var) for var in after)

    def _is_off_heap(self, var: Var) -> bool:
        """Return whether neither a value nor what it is made of lies on the heap."""
        pending, seen = [var], {var}
        while pending:
            current = pending.pop()
            value = self._values.get(current)
            is_off = not _may_be_on_heap(type_of(current)) or current in self._params
            if is_off and not isinstance(value, Function):
                continue
            match value:
                case Call() if self._is_kernel(value) and not self._escapes(current):
                    continue
                case TupleGet(Var() as whole):
                    parts = [whole]
                case Tuple(fields):
                    parts = [f for f in fields if isinstance(f, Var)]
                case _:
                    return False
            pending += (p for p in parts if p not in seen)
            seen.update(parts)
        return True


def _may_be_on_heap(ty: Type) -> bool:
    return has_tensors(ty) or any(isinstance(part, AdtType) for part in subtypes(ty))
