"""A first-order program in the making: its functions, data types and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...analysis.free_names import Summary, summarise
from ...ir.dims import Dim, DimVar
from ...ir.expr import Expr, Function, GlobalVar, type_of
from ...ir.module import ConstructorDef, Module
from ...ir.names import Names
from ...ir.types import AdtType, FnType, Substitution, Type, substitution
from .closures import (
    Closure,
    DataTarget,
    FunctionData,
    GlobalTarget,
    LocalTarget,
    NotFirstOrder,
    Target,
)
from .targets import Targets
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
        self._summaries: Final[dict[Function, Summary]] = {}
        self._globals: Final[dict[str, Unit]] = {}
        self._locals: Final[dict[LocalTarget, Unit]] = {}
        self.applied: Final[dict[FunctionData, str]] = {}
        """The names of the functions that call what function data stands for."""

    @staticmethod
    def already_data(value: Expr | Closure) -> Expr:
        """Return a value that is no known function as an atom."""
        assert not isinstance(value, Closure)
        return value

    def summary(self, function: Function) -> Summary:
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
        """Return the name of the function that calls what a piece of function data stands for."""
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
