"""The whole program made first-order: instances until none is asked for, then `apply` functions."""

from __future__ import annotations

from typing import ClassVar, Final, final

from ...analysis.matching import Matching
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim
from ...ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    Function,
    Match,
    Var,
    is_tail,
    type_of,
)
from ...ir.module import ConstructorDef, Module
from ...ir.types import AdtType, FnType, Substitution, TypeVar
from ...ir.verify import Stage
from ..base import Context, Pass
from .calls import Caller
from .closures import Closure, FunctionData, Instance, NotFirstOrder, Target
from .convert import Converter
from .program import FirstOrderProgram
from .units import Unit


def first_order(module: Module, entry: str) -> Module:
    """Return everything that `entry` reaches as closed global first-order functions.

    The module must be in A-normal form. A function keeps its name unless it has type variables or
    is specialised to functions it is passed, so the result may be laid over the module. Raises
    NotFirstOrder if functions come from outside, through the parameters of `entry`.
    """
    program = FirstOrderProgram(module, entry)
    return Module(_functions(program, entry), program.table.definitions())


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


def _functions(program: FirstOrderProgram, entry: str) -> dict[str, Function]:
    """Return all functions that `entry` reaches, itself first."""
    unit = program.global_unit(entry)
    _check_entry(program, unit)
    dims = tuple(Dim.of(p.name) for p in unit.type_params)
    program.units.request(unit, dims, (), unit.function.params, program.already_data)
    made: dict[str, Function] = {}
    applied: dict[FunctionData, _Apply] = {}
    while True:
        while program.units.pending:
            instance, unit = program.units.pending.popleft()
            made[instance.name] = Converter(program, instance, unit.function).function()
        for data, name in program.applied.items():
            applied.setdefault(data, _Apply(program, data, name))
        if not any(apply.add_arms() for apply in tuple(applied.values())):
            return {**made, **{a.name: a.function() for a in applied.values()}}


def _check_entry(program: FirstOrderProgram, unit: Unit) -> None:
    function = unit.function
    if any(isinstance(p, TypeVar) for p in unit.type_params):
        raise NotFirstOrder(f"`{unit.name}` has type variables", function.span)
    assert function.result is not None
    for ty in (*(type_of(p) for p in function.params), function.result):
        if program.table.holds_functions(ty):
            raise NotFirstOrder(f"functions go into or out of `{unit.name}`", function.span)


@final
class _Apply:
    """The function that applies a piece of function data, in the making."""

    def __init__(self, program: FirstOrderProgram, data: FunctionData, name: str) -> None:
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
        """Make the arms of the constructors met since; return whether there were any."""
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
