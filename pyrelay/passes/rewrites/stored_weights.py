"""Values that a program computes from its weights alone, in the place of weights that it needs for
nothing else.

The first parameters of the program are nested tuples of weights, and a model's state, which it only
reads. A value that is computed from them takes the place of a weight of the same type, if that
weight is read by such computations alone: so the weights keep their structure, names and types.
Only the straight line of the entry is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...analysis.call_graph import reachable
from ...dataclass import dataclass
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Function,
    RefRead,
    RefWrite,
    Tuple,
    TupleGet,
    Var,
    is_atom,
    type_of,
)
from ...ir.module import Module
from ...ir.op import Effect, Op
from ...ir.traverse import free_vars, let, post_order, refresh, spine, substitute
from ...ir.types import FnType, TupleType

Path: TypeAlias = tuple[int, ...]
"""The place of a part in the weights: the indices of fields, from the outside in."""

_WEIGHTS: Final = 2
"""How many parameters of an entry are weights: those that are trained, and the state."""


@final
@dataclass(frozen=True, slots=True)
class StoredWeights:
    """A program that reads weights that another function of its module computes: `function` maps
    the weights of before to the tuple of those at `places`."""

    module: Module
    function: str
    places: tuple[Path, ...]


def stored_weights(module: Module, entry: str) -> StoredWeights | None:
    """Return a module in A-normal form whose entry reads what it computed from its weights before;
    None where there is nothing to store."""
    reached = [module.functions[n] for n in reachable(module.functions, (entry,))]
    if any(isinstance(node, RefWrite) for f in reached for node in post_order(f)):
        return None
    function = module.functions[entry]
    line = _Line(function)
    places = line.places()
    if not places:
        return None
    name = f"{entry}.weights"
    made = {entry: line.reading(places), name: line.computing(name, tuple(places))}
    return StoredWeights(module.with_functions(made), name, tuple(places.values()))


@final
class _Line:
    """The straight line of an entry, with which of its variables depend on weights alone."""

    def __init__(self, function: Function) -> None:
        blocks, self._end = spine(function.body)
        self._function = function
        self._bindings = [b for block in blocks for b in block.bindings]
        self._paths: dict[Expr, Path] = {p: (i,) for i, p in enumerate(function.params[:_WEIGHTS])}
        self._cones: dict[Expr, frozenset[Expr]] = {}
        """For what is computed from weights alone the weights that it depends on."""
        self._used: set[Path] = set()
        """The parts that anything else reads."""
        self._wanted: dict[Var, None] = {}
        """The values that are computed from weights alone and read by anything else."""
        for binding in self._bindings:
            if not self._is_of_weights(binding):
                self._read(binding.value)
        self._read(self._end)

    def _is_of_weights(self, binding: Binding) -> bool:
        """Record a binding that depends on weights alone; return whether it does."""
        var, value = binding.var, binding.value
        match value:
            case TupleGet(source, index) if source in self._paths:
                self._paths[var] = (*self._paths[source], index)
                return True
            case RefRead(source) if source in self._paths:
                self._paths[var] = self._paths[source]
                return True
            case Call(Op() as op) if op.effect is Effect.NONE:
                vars_ = [arg for arg in value.args if isinstance(arg, Var)]
            case Tuple(fields):
                vars_ = [field for field in fields if isinstance(field, Var)]
            case _:
                return False
        known = [v in self._paths or v in self._cones for v in vars_]
        if not vars_ or not all(known):
            return False
        cones = (self._cones.get(v, frozenset((v,))) for v in vars_)
        self._cones[var] = frozenset[Expr]().union(*cones)
        return True

    def _read(self, value: Expr) -> None:
        found = (value,) if is_atom(value) else free_vars(value)
        for var in found:
            if var in self._paths:
                self._used.add(self._paths[var])
            if var in self._cones and isinstance(var, Var):
                self._wanted[var] = None

    def places(self) -> dict[Var, Path]:
        """Return the values to store with the weights whose places they take."""
        while True:
            found = self._assigned()
            # What stays in the program reads the weights as they are.
            left = [self._cones[var] for var in self._wanted if var not in found]
            read = {self._paths[weight] for cone in left for weight in cone}
            if read <= self._used:
                return found
            self._used |= read

    def _assigned(self) -> dict[Var, Path]:
        found: dict[Var, Path] = {}
        for var in self._wanted:
            for weight in (b.var for b in self._bindings if b.var in self._cones[var]):
                path = self._paths[weight]
                is_free = not any(path[: len(used)] == used for used in self._used)
                fits = path[0] == 0 and type_of(weight) == type_of(var)
                if is_free and fits and path not in found.values():
                    found[var] = path
                    break
        return found

    def reading(self, places: dict[Var, Path]) -> Function:
        """Return the entry that reads the stored values."""
        at = {path: var for var, path in reversed(self._paths.items()) if isinstance(var, Var)}
        stands = {var: at[path] for var, path in places.items()}
        kept = [b for b in self._bindings if b.var not in stands]
        body = substitute(let(kept, self._end), dict(stands))
        return replace(self._function, body=body)

    def computing(self, name: str, values: Sequence[Var]) -> Function:
        """Return the function from the weights to the values to store."""
        needed = [b for b in self._bindings if b.var in self._paths or b.var in self._cones]
        result = TupleType(tuple(type_of(v) for v in values))
        whole = Var("weights", result, span=self._function.span)
        stored = Binding(whole, Tuple(tuple(values), result, span=whole.span))
        params = self._function.params[:_WEIGHTS]
        ty = FnType(tuple(type_of(p) for p in params), result)
        body = let([*needed, stored], whole)
        made = Function(params, body, result, (), name, ty=ty, span=self._function.span)
        copied = refresh(made)
        assert isinstance(copied, Function)
        return copied
