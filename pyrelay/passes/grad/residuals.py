"""Residuals: what each body saves, and the data types that hold it.

A body saves what its own backward code needs and no body around it has saved already; the
residual of a branch is a generated data type with a constructor per arm. A size that the code
needs, and that no saved tensor shows, is saved as an integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from ...analysis.dim_availability import shown
from ...ir.dims import Dim
from ...ir.expr import Var
from ...ir.module import AdtDef, ConstructorDef
from ...ir.names import Names
from ...ir.traverse import Steps
from ...ir.types import (
    AdtType,
    SizeType,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
    as_arguments,
    dim_names,
    subtypes,
)
from .code import Branching, Code, Scope, Work
from .saved_values import type_of_saved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..deriving.store import Store


@final
class Planner:
    """Decides for one function what is saved where."""

    def __init__(self, store: Store, work: Work, at_hand: Sequence[Var]) -> None:
        self._store: Final = store
        self._work: Final = work
        self._names: Final = Names()
        self._saved: dict[Var, None] = {}
        """The values that the bodies around have saved, and the parameters that are passed
        anyway."""
        self._dims: dict[Dim, None] = {}
        self._passed: Final = frozenset(at_hand)
        self._shown: Final = {
            dim for var in work.source.homes for dim in shown(var.ty) if var.ty is not None
        }
        self._done: Final[set[Branching]] = set()

    def plan(self, scope: Scope, given: Sequence[Type], data: AdtType | None = None) -> Steps[None]:
        """Decide what a body saves; `given` are types of other values its code can see.

        `data` is the type that the residual must have. It goes to a branch that is all there is
        to save.
        """
        before = (len(self._saved), len(self._dims))
        for ty in given:
            self._dims.update(dict.fromkeys(shown(ty)))
        wanted = {v: None for code in scope.codes for v in code.needs.vars}
        scope.saved = [v for v in wanted if v not in self._saved and v not in self._passed]
        self._saved.update(dict.fromkeys(scope.saved))
        for var in (*self._passed, *scope.saved):
            self._dims.update(dict.fromkeys(shown(self._work.types.get(var) or var.ty)))
        for code in scope.codes:
            self._save_sizes(scope, code)
        alone = scope.saved[0] if len(scope.saved) == 1 else None
        for code in scope.codes:
            yield self._forks(code, data, alone)
        _shorten(self._saved, before[0])
        _shorten(self._dims, before[1])

    def _forks(self, code: Code, data: AdtType | None, alone: Var | None) -> Steps[None]:
        for fork in code.forks.values():
            branching = self._work.branchings[fork.step, fork.ending]
            if branching.by_condition:
                for _, inside in fork.arms:
                    yield self._forks(inside, None, None)
            elif branching not in self._done:
                self._done.add(branching)
                yield self._branching(branching, data if branching.var is alone else None)

    def _branching(self, branching: Branching, data: AdtType | None) -> Steps[None]:
        before = (self._saved, self._dims)
        if len(branching.forks) > 1:
            # Reached from two places, which have saved different things: rely on neither.
            self._saved, self._dims = {}, {}
        for scope in branching.scopes.values():
            yield self.plan(scope, ())
        self._saved, self._dims = before
        arms = list(branching.scopes.items())
        if len(arms) == 1:
            self._work.types[branching.var] = packed_type(self._work, arms[0][1].saved)
            return
        self._work.types[branching.var] = self._define(branching, data)

    def _define(self, branching: Branching, data: AdtType | None) -> AdtType:
        """Define the data type with a constructor for each arm."""
        function = self._work.source.function
        fields = [
            tuple(type_of_saved(self._work, v) for v in s.saved) for s in branching.scopes.values()
        ]
        name = (
            data.name
            if data is not None
            else self._store.data_name(f"{self._work.source.name}_path")
        )
        params = function.type_params
        if data is None:
            params = _occurring(params, [t for types in fields for t in types])
        constructors: list[ConstructorDef] = []
        for number, (arm, types) in enumerate(zip(branching.scopes, fields, strict=True)):
            made = self._store.data_name(f"{name}_{number}")
            branching.constructors[arm] = made
            constructors.append(ConstructorDef(made, types))
        span = branching.step.value.span.derived("what the gradient saves")
        self._store.adts[name] = AdtDef(name, params, tuple(constructors), span)
        return AdtType(name, as_arguments(params))

    def _save_sizes(self, scope: Scope, code: Code) -> None:
        for dim in code.needs.dims:
            if self._isshown(dim):
                continue
            names = sorted(dim.names())
            known = all(Dim.of(n) in self._shown for n in names)
            for part in [Dim.of(n) for n in names] if known else [dim]:
                if part in self._dims:
                    continue
                span = self._work.source.function.span
                hint = part.name or "size"
                var = Var(self._names.fresh(f"size_{hint}"), SizeType(part), span=span)
                self._work.sizes[var] = part
                scope.saved.append(var)
                self._dims[part] = None

    def _isshown(self, dim: Dim) -> bool:
        return dim in self._dims or all(Dim.of(n) in self._dims for n in dim.names())


def _shorten(entries: dict[Any, None], length: int) -> None:
    """Drop the entries made last."""
    while len(entries) > length:
        entries.popitem()


def packed_type(work: Work, saved: Sequence[Var]) -> Type:
    """Return the type of saved values put together: the one value, or a tuple."""
    types = tuple(type_of_saved(work, v) for v in saved)
    return types[0] if len(types) == 1 else TupleType(types)


def _occurring(params: Sequence[TypeParam], types: Sequence[Type]) -> tuple[TypeParam, ...]:
    names: set[str] = set()
    for ty in types:
        names |= dim_names(ty)
        names |= {t.name for t in subtypes(ty) if isinstance(t, TypeVar)}
    return tuple(p for p in params if p.name in names)
