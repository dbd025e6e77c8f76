"""Functions whose body may take the place of a call: the types at a call, and when it may."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, final

from ..ir.dims import Dim
from ..ir.expr import Assumption, Function, type_of
from ..ir.names import Names
from ..ir.types import Substitution, Type, substitution
from .dim_availability import shown, uncovered
from .free_names import names_in, summarise
from .matching import Matching


@final
class Callee:
    """A global function as its calls see it."""

    def __init__(self, function: Function) -> None:
        self.function: Final = function
        own = {p.name for p in function.type_params}
        summary = summarise(function)[function]
        self.own_sizes: Final = tuple(n for n in summary.sizes if n not in own)
        """The sizes found while the function runs."""
        self.taken: Final = summary.taken
        """The dims whose value it takes from its parameters."""

    def change(
        self, type_args: Sequence[Type | Dim], ty: Type, fresh: Callable[[str], str]
    ) -> Substitution:
        """Return the substitution of its sizes and type variables at a call of a type.

        A size that it finds while it runs is that of the call's type, or gets a `fresh` name.
        """
        change = substitution(self.function.type_params, tuple(type_args))
        if not self.own_sizes:
            return change
        assert self.function.result is not None
        # The sizes of the call may have the names of those that the function finds.
        names = Names(names_in((ty, *type_args)))
        sought = {name: names.fresh(name) for name in self.own_sizes}
        change.dims.update((name, Dim.of(own)) for name, own in sought.items())
        met = Matching()
        met.match(change(self.function.result), ty)
        for name, own in sought.items():
            found = met.dims.get(own)
            change.dims[name] = Dim.of(fresh(name)) if found is None else found
        return change

    def fits(
        self, change: Substitution, given: Collection[Dim], assumptions: Collection[Assumption]
    ) -> bool:
        """Return whether its body may stand in a function whose parameters show the dims `given`:
        every size that it takes is known there, and what it assumes is assumed there."""
        params = self.function.params
        known = {*given, *(d for p in params for d in shown(change(type_of(p))))}
        if any(True for d in self.taken for _ in uncovered(change.dim(d), known)):
            return False
        allowed = {(a.left, a.right) for a in assumptions}
        for found in self.function.assumptions:
            left, right = change.dim(found.left), change.dim(found.right)
            if left != right and (left, right) not in allowed:
                return False
        return True
