"""A first-order program in the making: its functions, data types and names.

Its known functions are numbered as they are met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

from ...analysis.free_names import FreeNames, names_in, summarise
from ...analysis.matching import Matching
from ...diagnostics.source import Span
from ...ir.dims import Dim, DimVar
from ...ir.expr import Expr, Function, GlobalVar, Transform, Var, type_of
from ...ir.module import ConstructorDef, Module
from ...ir.names import Names
from ...ir.types import AdtType, FnType, Substitution, Type, TypeParam, substitution
from .closures import (
    Closure,
    ConstructorTarget,
    DataTarget,
    FunctionData,
    GlobalTarget,
    Instance,
    LocalTarget,
    NotFirstOrder,
    Target,
    TransformTarget,
    Value,
)
from .types import TypeTable
from .units import Unit, Units, change

if TYPE_CHECKING:
    from ...diagnostics.source import Span


@final
class FirstOrderProgram:
    """A first-order program in the making."""

    def __init__(self, module: Module, entry: str) -> None:
        names = Names(module.functions)
        self._module: Final = module
        self._names: Final = names
        self._constructor_names: Final = Names()
        self.table: Final = TypeTable(module.adts, Names(), module.functions[entry].span)
        self.units: Final = Units(self.table, names)
        self.targets: Final = Targets(module.functions, self.table)
        self._summaries: Final[dict[Function, FreeNames]] = {}
        self._globals: Final[dict[str, Unit]] = {}
        self._locals: Final[dict[LocalTarget, Unit]] = {}
        self.applied: Final[dict[FunctionData, str]] = {}
        """The names of the functions that call what function data stands for."""

    @staticmethod
    def already_data(value: Expr | Closure) -> Expr:
        """Return a value that is no known function as an atom."""
        assert not isinstance(value, Closure)
        return value

    def summary(self, function: Function) -> FreeNames:
        """Return the free names of a function of the source."""
        return self._summaries[function]

    def global_unit(self, name: str) -> Unit:
        """Return the unit of a global function of the source."""
        unit = self._globals.get(name)
        if unit is None:
            function = self._module.functions[name]
            self._summaries.update(summarise(function))
            unit = self._globals[name] = Unit(
                name,
                function,
                function.type_params,
                Substitution({}, {}),
                None,
                self.summary(function).sizes,
            )
        return unit

    def local_unit(self, target: LocalTarget) -> Unit:
        """Return the unit of a local function."""
        unit = self._locals.get(target)
        if unit is None:
            params = tuple(DimVar(s) for s in target.sizes)
            unit = self._locals[target] = Unit(
                target.name,
                target.function,
                params,
                target.owner.change,
                target,
                self.summary(target.function).sizes,
            )
        return unit

    def constructor(self, target: Target) -> tuple[AdtType, str]:
        """Return the constructor that makes a known function a piece of data, and its type."""
        ty = self.table.convert(target.type)
        data = self.table.data_of(ty)
        assert data is not None
        assert isinstance(ty, AdtType)
        found = data.constructors.get(target)
        if found is None:
            name = self._constructor_names.fresh(_constructor_name(target.name))
            found = data.constructors[target] = ConstructorDef(name, target.leaf_types)
        return ty, found.name

    def apply(self, data: FunctionData) -> str:
        """Return the name of the function that applies a piece of function data."""
        if data not in self.applied:
            self.applied[data] = self._names.fresh(f"apply.{data.name}")
        return self.applied[data]

    def as_global(self, closure: Closure, span: Span) -> GlobalVar:
        """Return the global function of a known function, its captures as leading parameters, with
        its type."""
        target = closure.target
        match target:
            case LocalTarget():
                return self._mention(self.local_unit(target), closure.dims, span)
            case GlobalTarget(name=name, type_args=type_args):
                inside = Substitution(dict(zip(target.sizes, closure.dims, strict=True)), {})
                args = tuple(change(inside, a) for a in type_args)
                return self._mention(self.global_unit(name), args, span)
            case DataTarget(data=data, leaf_types=leaf_types):
                own = self.table.convert_signature(target.type)
                ty = FnType((*leaf_types, *own.params), own.result)
                return GlobalVar(self.apply(data), ty, span=span)
            case _:
                raise NotFirstOrder("what is transformed is no function of the program", span)

    def _mention(self, unit: Unit, type_args: tuple[Type | Dim, ...], span: Span) -> GlobalVar:
        request = self.units.request(unit, type_args, (), unit.function.params, self.already_data)
        instance = request.instance
        assert unit.function.result is not None
        result = self.table.convert(instance.change(unit.function.result))
        ty = FnType(tuple(type_of(p) for p in instance.params), result)
        inside = substitution(instance.type_params, request.type_args)
        return GlobalVar(instance.name, inside(ty), span=span)


def _constructor_name(name: str) -> str:
    plain = name.replace(".", "_")
    return plain[:1].upper() + plain[1:]


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
