"""The whole program made first-order: instances until none is asked for, then `apply` functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.free_names import Summary, summarise
from ...analysis.matching import Matching
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim, DimVar
from ...ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    Expr,
    Function,
    GlobalVar,
    Match,
    Var,
    is_tail,
    type_of,
)
from ...ir.module import ConstructorDef, Module
from ...ir.names import Names
from ...ir.types import AdtType, FnType, Substitution, Type, TypeVar, substitution
from ...ir.verify import Stage
from ..base import Context, Pass
from .calls import Caller
from .closures import Closure, DataTarget, GlobalTarget, LocalTarget, NotFirstOrder, Target
from .convert import Converter
from .targets import Targets
from .types import FunctionData, TypeTable
from .units import Instance, Unit, Units, change

if TYPE_CHECKING:
    from ...diagnostics.source import Span


def first_order(module: Module, entry: str) -> Module:
    """Return everything that `entry` reaches as closed global first-order functions.

    The module must be in A-normal form. A function keeps its name unless it has type variables or
    is specialised to functions it is passed, so the result may be laid over the module. Raises
    NotFirstOrder if functions come from outside, through the parameters of `entry`.
    """
    program = Program(module, entry)
    return Module(program.make(entry), program.table.definitions())


@final
@dataclass(frozen=True, slots=True)
class FirstOrder(Pass):
    """Replace function values by data and dispatch (defunctionalisation)."""

    name: ClassVar = "first-order"
    needs: ClassVar = Stage.ANF
    gives: ClassVar = Stage.FIRST_ORDER

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return first_order(module, context.entry)


@final
class Program:
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
        self._applied: Final[dict[FunctionData, _Apply]] = {}

    def make(self, entry: str) -> dict[str, Function]:
        """Return all functions that `entry` reaches, itself first."""
        unit = self.global_unit(entry)
        self._check_entry(unit)
        dims = tuple(Dim.of(p.name) for p in unit.type_params)
        params = unit.function.params
        self.units.request(unit, dims, (), params, self._already_data)
        made: dict[str, Function] = {}
        while self.units.pending or self._add_arms():
            while self.units.pending:
                instance, unit = self.units.pending.popleft()
                made[instance.name] = Converter(self, instance, unit.function).function()
        return {**made, **{a.name: a.function() for a in self._applied.values()}}

    def _add_arms(self) -> bool:
        """Make the arms of the function data met since; tell whether there were any."""
        return any(apply.add_arms() for apply in tuple(self._applied.values()))

    def _check_entry(self, unit: Unit) -> None:
        function = unit.function
        if any(isinstance(p, TypeVar) for p in unit.type_params):
            raise NotFirstOrder(f"`{unit.name}` has type variables", function.span)
        assert function.result is not None
        for ty in (*(type_of(p) for p in function.params), function.result):
            if self.table.holds_functions(ty):
                why = f"functions go into or out of `{unit.name}`"
                raise NotFirstOrder(why, function.span)

    @staticmethod
    def _already_data(value: Expr | Closure) -> Expr:
        assert not isinstance(value, Closure)
        return value

    def summary(self, function: Function) -> Summary:
        """Return what a function of the source takes from around it."""
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
        found = self._applied.get(data)
        if found is None:
            name = self._names.fresh(f"apply.{data.name}")
            found = self._applied[data] = _Apply(self, data, name)
        return found.name

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
        request = self.units.request(unit, type_args, (), unit.function.params, self._already_data)
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
class _Apply:
    """The function that calls what a piece of function data stands for, in the making."""

    def __init__(self, program: Program, data: FunctionData, name: str) -> None:
        self.name: Final = name
        self._program: Final = program
        self._data: Final = data
        span = data.span
        self._function: Final = Var("f", AdtType(data.name), span=span)
        self._params: Final = tuple(
            Var(f"x{i}", ty, span=span) for i, ty in enumerate(data.type.params)
        )
        self._clauses: Final[dict[Target, Clause]] = {}

    def add_arms(self) -> bool:
        """Make the arms of the constructors met since; tell whether there were any."""
        new = [t for t in self._data.constructors if t not in self._clauses]
        for target in new:
            self._clauses[target] = self._arm(target, self._data.constructors[target])
        return bool(new)

    def _arm(self, target: Target, constructor: ConstructorDef) -> Clause:
        span = self._data.span
        # A size of the function is read off an argument where one has it, else off a capture.
        seen = Matching()
        signature = self._program.table.convert_signature(target.type)
        for declared, actual in zip(signature.params, self._data.type.params, strict=True):
            seen.match(declared, actual)
        dims = tuple(seen.dims.get(s, Dim.of(f"{s}_{target.number}")) for s in target.sizes)
        inside = Substitution(dict(zip(target.sizes, dims, strict=True)), {})
        leaves = tuple(
            Var(f"c{i}", inside(ty), span=span) for i, ty in enumerate(target.leaf_types)
        )
        instance = Instance(self.name, self.name, Substitution({}, {}), (), span)
        code = BlockBuilder()
        result = Caller(self._program, instance).call(
            Closure(target, dims, leaves), self._params, self._data.type.result, span, code
        )
        if not is_tail(result):
            result = code.bind(Var("r", result.ty, span=span), result)
        fields = tuple(BindPattern(leaf, span=span) for leaf in leaves)
        pattern = ConstructorPattern(self._data.name, constructor.name, fields, span=span)
        return Clause(pattern, code.close(result))

    def function(self) -> Function:
        """Return the function, once no more constructors can come up."""
        span, result = self._data.span, self._data.type.result
        clauses = tuple(self._clauses.values())
        body = Match(self._function, clauses, not clauses, result, span=span)
        params = (self._function, *self._params)
        ty = FnType(tuple(type_of(p) for p in params), result)
        return Function(params, body, result, (), self.name, (), ty, span=span)
