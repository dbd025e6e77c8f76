"""The known functions of a program, numbered in the order they are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from ...analysis.free_names import names_in
from ...analysis.matching import Matching
from ...diagnostics.source import Span
from ...ir.dims import Dim
from ...ir.expr import Expr, Function, Transform, Var, type_of
from ...ir.types import FnType, Substitution, Type, TypeParam
from .closures import (
    Closure,
    ConstructorTarget,
    DataTarget,
    GlobalTarget,
    Instance,
    LocalTarget,
    NotFirstOrder,
    Target,
    TransformTarget,
    Value,
)
from .types import TypeTable
from .units import change


@final
class Targets:
    """Makes targets; the same one for the same use of a global function or constructor."""

    def __init__(self, functions: Mapping[str, Function], table: TypeTable) -> None:
        self._functions: Final = functions
        self._table: Final = table
        self._known: Final[dict[object, Target]] = {}
        self._count = 0

    def _number(self) -> int:
        self._count += 1
        return self._count

    def of_global(self, name: str, ty: FnType, span: Span) -> Closure:
        """Return a global function used as a value of type `ty`."""
        function = self._functions[name]
        assert isinstance(function.ty, FnType)
        found = Matching()
        for declared, actual in zip(
            (*function.ty.params, function.ty.result), (*ty.params, ty.result), strict=True
        ):
            found.match(declared, actual)
        type_args = tuple(_arg(found, p, name, span) for p in function.type_params)
        type_args = tuple(a if isinstance(a, Dim) else self._table.convert(a) for a in type_args)
        names, rename = _canonical((ty, *type_args))
        key = (name, tuple(change(rename, a) for a in type_args), rename(ty))
        target = self._known.get(key)
        if target is None:
            sizes = tuple(f"n{i}" for i in range(len(names)))
            made = rename(ty)
            assert isinstance(made, FnType)
            target = self._known[key] = GlobalTarget(self._number(), name, key[1], sizes, made)
        return Closure(target, tuple(Dim.of(n) for n in names))

    def of_constructor(self, name: str, ty: FnType) -> Closure:
        """Return a constructor used as a value of type `ty`."""
        names, rename = _canonical((ty,))
        made = rename(ty)
        assert isinstance(made, FnType)
        key = (name, made)
        target = self._known.get(key)
        if target is None:
            sizes = tuple(f"n{i}" for i in range(len(names)))
            target = self._known[key] = ConstructorTarget(self._number(), name, sizes, made)
        return Closure(target, tuple(Dim.of(n) for n in names))

    def of_data(self, atom: Expr) -> Closure:
        """Return the function that a piece of function data stands for."""
        ty = type_of(atom)
        data = self._table.data_of(ty)
        assert data is not None, "only function data is called"
        target = self._known.get(data.name)
        if target is None:
            target = self._known[data.name] = DataTarget(
                self._number(), data.name, data, (), data.type, (ty,)
            )
        return Closure(target, (), (atom,))

    def of_transform(self, transform: Transform, inner: Closure, ty: FnType) -> TransformTarget:
        """Return a transform of a known function; `ty` is the type of what it makes."""
        target = inner.target
        back = {d.name: Dim.of(s) for d, s in zip(inner.dims, target.sizes, strict=True) if d.name}
        made = Substitution(back, {})(ty)
        assert isinstance(made, FnType)
        return TransformTarget(
            self._number(),
            f"{transform.rule.value}.{target.name}",
            transform,
            target,
            target.sizes,
            made,
            target.leaf_types,
            target.code,
            target.grows,
        )

    def of_locals(
        self,
        owner: Instance,
        functions: Mapping[Var, Function],
        captures: Sequence[tuple[Var, Value]],
        leaves: Sequence[Var],
        sizes: tuple[str, ...],
    ) -> dict[Var, LocalTarget]:
        """Return the local functions of a group, which share their captures."""
        inside = frozenset[Function]().union(
            *(v.target.code for _, v in captures if isinstance(v, Closure))
        )
        own = frozenset(functions.values())
        members: dict[Var, LocalTarget] = {}
        for var, function in functions.items():
            ty = owner.change(type_of(function))
            assert isinstance(ty, FnType)
            members[var] = LocalTarget(
                self._number(),
                f"{owner.source}.{function.name or var.name or 'lambda'}",
                function,
                owner,
                sizes,
                tuple(type_of(leaf) for leaf in leaves),
                tuple(leaf.name for leaf in leaves),
                ty,
                tuple(captures),
                own | inside,
                not own.isdisjoint(inside),
            )
        for target in members.values():
            target.group.update(members)
        return members


def _canonical(parts: Sequence[Type | Dim]) -> tuple[tuple[str, ...], Substitution]:
    names = tuple(dict.fromkeys(names_in(parts)))
    return names, Substitution({n: Dim.of(f"n{i}") for i, n in enumerate(names)}, {})


def _arg(found: Matching, param: TypeParam, function: str, span: Span) -> Type | Dim:
    arg = found.arg(param)
    if arg is None:
        why = f"`{param.name}` cannot be read off the type at which `{function}` is used"
        raise NotFirstOrder(why, span)
    return arg
