"""Functions to be made: one for each function, types and known functions it is used with.

A `Unit` is a function of the source program, global or local to an instance of another. A request
for a unit at some type arguments and arguments gives an `Instance`, a new one only if nothing
asked for the same before. Types are fixed per instance; sizes stay parameters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...analysis.free_names import names_in
from ...dataclass import dataclass
from ...ir.dims import Dim, DimVar
from ...ir.expr import Assumption, Expr, Function, Var, type_of
from ...ir.names import Names
from ...ir.types import Substitution, Type, TypeParam, TypeVar, substitution, subtypes
from .closures import Closure, EverNewTypes, Instance, LocalTarget, Value

if TYPE_CHECKING:
    from .types import TypeTable

MAX_KNOWN: Final = 64
"""How many instances of a function may be made for known function arguments."""
MAX_INSTANCES: Final = 256
"""How many instances of a function there may be before its types are taken to grow for ever."""

MAX_PARTS: Final = 2_000
"""How large a type argument may be before it is taken to grow for ever: `tuple[A, A]` in place of
`A` doubles with each instance."""

_Arg: TypeAlias = "Type | Dim"


@final
class Unit:
    """A function of the source program that instances are made of.

    `base` brings its types into the terms of its type parameters; for a local function these are
    the sizes of the instance around it.
    """

    def __init__(
        self,
        name: str,
        function: Function,
        type_params: tuple[TypeParam, ...],
        base: Substitution,
        target: LocalTarget | None,
        mentioned: Sequence[str],
    ) -> None:
        self.name: Final = name
        self.function: Final = function
        self.type_params: Final = type_params
        self.base: Final = base
        self.target: Final = target
        self._mentioned: Final = mentioned

    def fixed(self, values: Sequence[Value]) -> tuple[bool, ...]:
        """Return, for each type parameter, whether an instance for arguments fixes it: a type
        variable, or a size in the type of a parameter that is a known function. What the function
        was made of speaks of the same sizes."""
        sizes: set[str] = set()
        for param, value in zip(self.function.params, values, strict=True):
            if isinstance(value, Closure):
                sizes.update(names_in((self.base(type_of(param)),)))
        return tuple(isinstance(p, TypeVar) or p.name in sizes for p in self.type_params)

    @cached_property
    def sizes(self) -> frozenset[str]:
        """The names of the sizes that the function mentions, in terms of its type parameters."""
        found = (self.base.dim(Dim.of(name)) for name in self._mentioned)
        own = (p.name for p in self.type_params)
        return frozenset().union(own, *(d.names() for d in found))


@final
@dataclass(frozen=True, slots=True)
class Request:
    """How to call an instance."""

    instance: Instance
    type_args: tuple[_Arg, ...]
    args: tuple[Expr, ...]


@final
@dataclass(frozen=True, slots=True)
class _Wanted:
    """The request for an instance, in the caller's terms: type arguments, those that it
    fixes and those that stay its own, arguments, and the names of the caller's sizes in what is
    fixed."""

    fixed: tuple[tuple[TypeParam, _Arg], ...]
    kept: tuple[tuple[TypeParam, _Arg], ...]
    values: tuple[Value, ...]
    names: tuple[str, ...]

    @staticmethod
    def of(unit: Unit, type_args: Sequence[_Arg], values: tuple[Value, ...]) -> _Wanted:
        """Return the instance that a call needs."""
        flags = unit.fixed(values)
        pairs = tuple(zip(unit.type_params, type_args, strict=True))
        fixed = tuple(p for p, flag in zip(pairs, flags, strict=True) if flag)
        kept = tuple(p for p, flag in zip(pairs, flags, strict=True) if not flag)
        dims = (d for v in values if isinstance(v, Closure) for d in v.dims)
        names = tuple(dict.fromkeys(names_in((*(a for _, a in fixed), *dims))))
        return _Wanted(fixed, kept, values, names)

    @property
    def has_known(self) -> bool:
        """Return whether an argument is a known function."""
        return any(isinstance(v, Closure) for v in self.values)

    def key(self, unit: Unit) -> object:
        """Return the key of an instance: everything, with the sizes called by number."""
        rename = Substitution({n: Dim.of(f"'{i}") for i, n in enumerate(self.names)}, {})
        fixed = tuple(change(rename, a) for _, a in self.fixed)
        shapes = tuple(
            (v.target.number, tuple(rename.dim(d) for d in v.dims))
            if isinstance(v, Closure)
            else None
            for v in self.values
        )
        return (unit, fixed, shapes)


def change(replace_: Substitution, arg: _Arg) -> _Arg:
    """Return a type or dim under a substitution."""
    return replace_.dim(arg) if isinstance(arg, Dim) else replace_(arg)


@final
class Units:
    """All instances, and those still to be made."""

    def __init__(self, table: TypeTable, names: Names) -> None:
        self.table: Final = table
        self.names: Final = names
        self.pending: Final[deque[tuple[Instance, Unit]]] = deque()
        self._instances: Final[dict[object, Instance]] = {}
        self._counts: Final[dict[Function, int]] = {}

    def request(
        self,
        unit: Unit,
        type_args: Sequence[_Arg],
        leaves: tuple[Expr, ...],
        values: Sequence[Value],
        as_data: Callable[[Value], Expr],
    ) -> Request:
        """Return the instance for a call; `as_data` gives a known function as a plain atom."""
        shallow = tuple(as_data(v) if _grows(v) else v for v in values)
        wanted = _Wanted.of(unit, type_args, shallow)
        count = self._counts.get(unit.function, 0)
        if wanted.has_known and count >= MAX_KNOWN and wanted.key(unit) not in self._instances:
            wanted = _Wanted.of(unit, type_args, tuple(as_data(v) for v in shallow))
        key = wanted.key(unit)
        instance = self._instances.get(key)
        if instance is None:
            if count >= MAX_INSTANCES or any(map(_is_large, type_args)):
                raise EverNewTypes(unit.name, unit.function.span)
            instance = self._instances[key] = self._make(unit, wanted)
            self._counts[unit.function] = count + 1
            self.pending.append((instance, unit))
        kept = (a for _, a in wanted.kept)
        named = tuple(Dim.of(n) for n in wanted.names)
        return Request(instance, (*kept, *named), (*leaves, *_flat(wanted.values)))

    def _make(self, unit: Unit, wanted: _Wanted) -> Instance:
        own = _own_names(wanted.names, unit.sizes - {p.name for p, _ in wanted.fixed})
        here = Substitution({n: Dim.of(own[n]) for n in wanted.names}, {})
        fixed = tuple(p for p, _ in wanted.fixed)
        inner = substitution(fixed, tuple(change(here, a) for _, a in wanted.fixed))
        params = (*(p for p, _ in wanted.kept), *(DimVar(own[n]) for n in wanted.names))
        name, span = self._name(unit, wanted), unit.function.span
        instance = Instance(name, unit.name, _composed(unit.base, inner), params, span)
        instance.assumptions = _assumed(unit.function.assumptions, instance.change)
        if unit.target is not None:
            _bind_captures(instance, unit.target, inner)
            known = frozenset(p.name for p in unit.type_params)
            around = (a for a in unit.target.owner.assumptions if _names(a) <= known)
            instance.assumptions += _assumed(around, inner)
        for var, value in zip(unit.function.params, wanted.values, strict=True):
            self._bind_param(instance, var, value, here)
        return instance

    def _bind_param(self, instance: Instance, var: Var, value: Value, here: Substitution) -> None:
        if not isinstance(value, Closure):
            ty = self.table.convert(instance.change(type_of(var)))
            instance.values[var] = instance.add_param(var.name, ty, var.span)
            return
        dims = tuple(here.dim(d) for d in value.dims)
        inside = Substitution(dict(zip(value.target.sizes, dims, strict=True)), {})
        leaves = tuple(
            instance.add_param(_leaf_name(leaf, var), inside(ty), var.span)
            for leaf, ty in zip(value.leaves, value.target.leaf_types, strict=True)
        )
        instance.values[var] = Closure(value.target, dims, leaves)

    def _name(self, unit: Unit, wanted: _Wanted) -> str:
        if not wanted.fixed and not wanted.has_known and unit.target is None:
            return unit.name
        known = (v.target.name for v in wanted.values if isinstance(v, Closure))
        return self.names.fresh(".".join((unit.name, *known)))


def _is_large(arg: _Arg) -> bool:
    return not isinstance(arg, Dim) and any(islice(subtypes(arg), MAX_PARTS, None))


def _grows(value: Value) -> bool:
    return isinstance(value, Closure) and value.target.grows


def _flat(values: Sequence[Value]) -> Iterator[Expr]:
    for value in values:
        yield from value.leaves if isinstance(value, Closure) else (value,)


def _leaf_name(leaf: Expr, var: Var) -> str:
    return leaf.name if isinstance(leaf, Var) else var.name


def _own_names(names: Sequence[str], taken: frozenset[str]) -> dict[str, str]:
    """Map each of the caller's names to one that is free in the instance, its own if possible."""
    free = Names(taken)
    return {name: free.fresh(name) for name in names}


def _composed(base: Substitution, inner: Substitution) -> Substitution:
    """Return the substitution that does `base` first and then `inner`."""
    dims = {k: inner.dim(v) for k, v in base.dims.items()}
    types = {k: inner(v) for k, v in base.types.items()}
    return Substitution({**inner.dims, **dims}, {**inner.types, **types})


def _assumed(found: Iterable[Assumption], change: Substitution) -> tuple[Assumption, ...]:
    return tuple(replace(a, left=change.dim(a.left), right=change.dim(a.right)) for a in found)


def _names(assumption: Assumption) -> frozenset[str]:
    return assumption.left.names() | assumption.right.names()


def _bind_captures(instance: Instance, target: LocalTarget, inner: Substitution) -> None:
    """Make the captures of a local function the first parameters of its instance."""
    leaves = tuple(
        instance.add_param(name, inner(ty), target.function.span)
        for name, ty in zip(target.leaf_names, target.leaf_types, strict=True)
    )
    rest = iter(leaves)
    for var, value in target.captures:
        instance.values[var] = _filled(value, rest, inner)
    for var, member in target.group.items():
        dims = tuple(inner.dim(Dim.of(s)) for s in member.sizes)
        instance.values[var] = Closure(member, dims, leaves)


def _filled(value: Value, leaves: Iterator[Var], inner: Substitution) -> Value:
    """Return a captured value with its placeholders replaced by the next parameters."""
    if not isinstance(value, Closure):
        return next(leaves) if isinstance(value, Var) else value
    filled = tuple(next(leaves) if isinstance(a, Var) else a for a in value.leaves)
    return Closure(value.target, tuple(inner.dim(d) for d in value.dims), filled)
