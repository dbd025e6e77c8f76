"""Updates of models in place, where that is not observable.

A program updates a model by writing new parameters into its cell (pyrelay/runtime/README.md). Where
nothing aliases the old ones afterwards, the tensors themselves are written: all the steps
`param - lr * grad` of one write become one `descend_in_place`. A gradient that is a product of
matrices, which that of every linear layer is, is then not computed at all: its factors are
multiplied into the parameter. Steps of other optimisers that move some rows of a table are taken on
these rows (`update_rows`), and where kernels are made, other steps are stored over what they move
(`update_steps`).

Cells whose contents a program made itself keep their new tensors: they may hold constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, TypeAlias, final

from ...analysis.aliasing import RefAliasing
from ...analysis.bindings import definitions, uses
from ...dataclass import dataclass
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    RefWrite,
    Tuple,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.traverse import map_bindings
from ...ir.types import UNIT, TupleType, Type
from ...ir.verify import Stage
from ...operators.composite.descent import descend_in_place
from ...operators.composite.optim import sgd_step
from ...operators.matrices.products import matmul
from ..base import Context, Opaque, Pass, nothing_opaque
from .cell_contents import Contents
from .low_rank_gradients import factors_of
from .update_rows import RowUpdate, row_update
from .update_steps import StepUpdate, step_update


@final
@dataclass(frozen=True, slots=True)
class _ParameterStep:
    """One parameter's step: the parameter, its gradient or the two factors of it."""

    param: Var
    grad: Var
    factors: tuple[Var, Var] | None


@final
@dataclass(frozen=True, slots=True)
class _Descent:
    """All steps of one write, and the variables that are needed for nothing else."""

    write: RefWrite
    steps: tuple[_ParameterStep, ...]
    lr: float
    spare: frozenset[Expr]

    def take_part(self, aliasing: RefAliasing) -> None:
        """Record that the parameters are stored to at the write; a gradient must not be among
        them."""
        for step in self.steps:
            aliasing.lost.update(aliasing.by(step.grad))
            aliasing.use_at(step.param, aliasing.place[self.write])

    def settled(self, aliasing: RefAliasing) -> _Descent:
        """Return the descent with gradients that are products left out, unless a factor may be a
        parameter, which a step before this one would have changed."""
        steps: list[_ParameterStep] = []
        spare = set(self.spare)
        for step in self.steps:
            if step.factors is None or any(aliasing.by(v) for v in step.factors):
                steps.append(replace(step, factors=None))
                continue
            steps.append(step)
            spare.add(step.grad)
        return replace(self, steps=tuple(steps), spare=frozenset(spare))

    def bindings(self, var: Var) -> list[Binding]:
        """Return the bindings that take the place of the write's."""
        span = self.write.span
        bound: list[Binding] = []

        def pack(name: str, fields: tuple[Var, ...]) -> Var:
            types = tuple(f.ty for f in fields if f.ty is not None)
            var = Var(name, TupleType(types), span=span)
            bound.append(Binding(var, Tuple(fields, var.ty, span=span)))
            return var

        grads = tuple(
            s.grad if s.factors is None else pack("factors", s.factors) for s in self.steps
        )
        operands = (pack("params", tuple(s.param for s in self.steps)), pack("grads", grads))
        step = Call(descend_in_place, operands, {"lr": self.lr}, ty=UNIT, span=span)
        return [*bound, Binding(var, step)]


_Update = _Descent | RowUpdate | StepUpdate


_Find: TypeAlias = Callable[[RefWrite, Mapping[Expr, Expr], Counter[Expr]], _Update | None]
"""Returns a write as an update, given the definitions and the uses in its function."""


def update_in_place(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form and without transforms, with updates in place. Steps and
    products stay where they are `opaque`."""

    def find(write: RefWrite, defined: Mapping[Expr, Expr], uses: Counter[Expr]) -> _Update | None:
        descent = _Descents(defined, uses, opaque).of(write)
        return descent or row_update(write, defined, uses)

    return module if opaque(sgd_step) else _updated(module, opaque, find)


def store_steps(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form and without transforms, with the results of optimisers'
    steps stored over what they move."""
    return _updated(module, opaque, step_update)


@final
@dataclass(frozen=True, slots=True)
class UpdateInPlace(Pass):
    """Update parameters of models in place where nothing reads the old ones."""

    name: ClassVar = "in-place"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return update_in_place(module, context.opaque)


@final
@dataclass(frozen=True, slots=True)
class StoreSteps(Pass):
    """Store the results of optimisers' steps over what they move, as kernels can."""

    name: ClassVar = "store-steps"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return store_steps(module, context.opaque)


def _updated(module: Module, opaque: Opaque, find: _Find) -> Module:
    updates = _updates(module, opaque, find)
    return module.map_functions(lambda f: _rewritten(f, updates)) if updates else module


def _updates(module: Module, opaque: Opaque, find: _Find) -> dict[RefWrite, _Update]:
    """Return the writes of a module that can be done in place."""
    writes: list[RefWrite] = []
    made: dict[RefWrite, _Update] = {}
    for function in module.functions.values():
        values, counts = definitions(function), uses(function)
        own = [v for v in values.values() if isinstance(v, RefWrite)]
        writes += own
        found = {w: update for w in own if (update := find(w, values, counts)) is not None}
        made.update(found)
    types = frozenset(_content(w) for w in made)
    if not types:
        return {}
    aliasing = RefAliasing(module, types, opaque, made)
    aliasing.lost.update(_content(w) for w in writes if w not in made)
    for update in made.values():
        update.take_part(aliasing)
    aliasing.settle()
    kept = (w for w in made if _content(w) not in aliasing.lost)
    return {w: made[w].settled(aliasing) for w in kept}


@final
@dataclass(frozen=True, slots=True)
class _Descents:
    """Finds the writes of one function that are steps of gradient descent."""

    defined: Mapping[Expr, Expr]
    uses: Counter[Expr]
    opaque: Opaque

    def of(self, write: RefWrite) -> _Descent | None:
        """Return a write as a descent; None if it writes anything else."""
        contents = Contents(write, self.defined, self.uses)
        steps: list[_ParameterStep] = []
        rates: set[float] = set()
        spare: set[Expr] = set()
        for atom, path in contents.parts():
            if isinstance(atom, Tuple) and not atom.fields:
                continue  # a model without memory
            if not isinstance(atom, Var):
                return None
            if self.uses[atom] == 1:
                spare.add(atom)
            elif not contents.stays(atom, path):
                return None
            if contents.stays(atom, path) or contents.fields(atom) is not None:
                continue  # a parameter that stays, or the memory of an optimiser
            match self.defined.get(atom):
                case Call(callee, (Var() as param, Var() as grad, Constant(float() as lr))) if (
                    callee is sgd_step and contents.stays(param, path)
                ):
                    if param.ty != grad.ty:
                        return None
                    rates.add(lr)
                    factors = (
                        None if self.opaque(matmul) else factors_of(grad, self.defined, self.uses)
                    )
                    steps.append(_ParameterStep(param, grad, factors))
                case _:
                    return None
        if len(rates) != 1:
            return None
        return _Descent(write, tuple(steps), rates.pop(), frozenset(spare))


def _content(write: RefWrite) -> Type:
    return type_of(write.value)


def _rewritten(function: Function, updates: Mapping[RefWrite, _Update]) -> Function:
    spare = frozenset[Expr]().union(*(u.spare for u in updates.values()))

    def change(binding: Binding) -> Sequence[Binding]:
        if binding.var in spare:
            return ()
        update = updates.get(binding.value) if isinstance(binding.value, RefWrite) else None
        return (binding,) if update is None else update.bindings(binding.var)

    body = map_bindings(function.body, change)
    return function if body is function.body else replace(function, body=body)
