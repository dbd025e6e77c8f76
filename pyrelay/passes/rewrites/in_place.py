"""Updates of models in place, where that is not observable.

A program updates a model by writing new parameters into its cell (pyrelay/runtime/README.md). Where
nothing aliases the old ones afterwards, the tensors themselves are written: all the steps
`param - lr * grad` of one write become one `descend_in_place`. A gradient that is a product of
matrices, which that of every linear layer is, is then not computed at all: its factors are
multiplied into the parameter.

Cells whose contents a program made itself keep their new tensors: they may hold constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, final

from ...analysis.aliasing import RefAliasing
from ...analysis.bindings import definitions, uses
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    LetBlock,
    RefRead,
    RefWrite,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.traverse import rewrite
from ...ir.types import UNIT, TupleType, Type
from ...ir.verify import Stage
from ...operators.composite.descent import descend_in_place
from ...operators.composite.optim import sgd_step
from ...operators.matrices.products import matmul
from ..base import Context, Opaque, Pass, nothing_opaque
from .low_rank_gradients import factors_of

_Path = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class _Step:
    """One parameter's step: the parameter, its gradient or the two factors of it."""

    param: Var
    grad: Var
    factors: tuple[Var, Var] | None


@final
@dataclass(frozen=True, slots=True)
class _Descent:
    """All steps of one write, and the variables that are needed for nothing else."""

    steps: tuple[_Step, ...]
    lr: float
    spare: frozenset[Var]


def update_in_place(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form and without transforms, with updates in place. Steps and
    products stay where they are `opaque`."""
    if opaque(sgd_step):
        return module
    found = _Finder(module, opaque)
    if not found.descents:
        return module
    functions = {n: _rewritten(f, found.descents) for n, f in module.functions.items()}
    return replace(module, functions=functions)


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
class _Finder:
    """The writes of a module that can be done in place."""

    def __init__(self, module: Module, opaque: Opaque) -> None:
        self._opaque: Final = opaque
        self.descents: Final[dict[RefWrite, _Descent]] = {}
        writes: list[RefWrite] = []
        made: dict[RefWrite, _Descent] = {}
        for function in module.functions.values():
            values = definitions(function)
            own = [v for v in values.values() if isinstance(v, RefWrite)]
            writes += own
            found = _Descents(values, uses(function), opaque)
            made.update((w, d) for w in own if (d := found.of(w)) is not None)
        types = frozenset(_content(w) for w in made)
        if not types:
            return
        aliasing = RefAliasing(module, types, self._opaque, made)
        aliasing.lost.update(_content(w) for w in writes if w not in made)
        for write, descent in made.items():
            self._take_part(aliasing, write, descent)
        aliasing.settle()
        for write, descent in made.items():
            if _content(write) not in aliasing.lost:
                self.descents[write] = self._without_products(aliasing, descent)

    def _take_part(self, aliasing: RefAliasing, write: RefWrite, descent: _Descent) -> None:
        """Note what a descent reads when the write is made, and lose what must not be among it."""
        place = aliasing.place[write]
        for step in descent.steps:
            aliasing.lost.update(aliasing.by(step.grad))
            aliasing.use_at(step.param, place)

    def _without_products(self, aliasing: RefAliasing, descent: _Descent) -> _Descent:
        """Return the descent with gradients that are products left out, unless a factor may be a
        parameter, which a step before this one would have changed."""
        steps: list[_Step] = []
        spare = set(descent.spare)
        for step in descent.steps:
            if step.factors is None or any(aliasing.by(v) for v in step.factors):
                steps.append(replace(step, factors=None))
                continue
            steps.append(step)
            spare.add(step.grad)
        return replace(descent, steps=tuple(steps), spare=frozenset(spare))


@final
@dataclass(frozen=True, slots=True)
class _Descents:
    """Finds the writes of one function that are steps of gradient descent."""

    defined: Mapping[Expr, Expr]
    uses: Counter[Expr]
    opaque: Opaque

    def of(self, write: RefWrite) -> _Descent | None:
        """Return a write as a descent; None if it writes anything else."""
        steps: list[_Step] = []
        rates: set[float] = set()
        spare: set[Var] = set()
        pending: list[tuple[Expr, _Path]] = [(write.value, ())]
        while pending:
            atom, path = pending.pop()
            if isinstance(atom, Var) and self._is_read(atom, path, write.ref):
                if self.uses[atom] == 1:
                    spare.add(atom)
                continue  # a parameter that stays, or the memory of an optimiser
            if isinstance(atom, Tuple) and not atom.fields:
                continue  # a model without memory
            if not isinstance(atom, Var) or self.uses[atom] != 1:
                return None
            spare.add(atom)
            match self.defined.get(atom):
                case Tuple(fields):
                    pending += reversed([(f, (*path, i)) for i, f in enumerate(fields)])
                case Call(callee, (Var() as param, Var() as grad, Constant(float() as lr))) if (
                    callee is sgd_step and self._is_read(param, path, write.ref)
                ):
                    if param.ty != grad.ty:
                        return None
                    rates.add(lr)
                    factors = (
                        None if self.opaque(matmul) else factors_of(grad, self.defined, self.uses)
                    )
                    steps.append(_Step(param, grad, factors))
                case _:
                    return None
        if len(rates) != 1:
            return None
        return _Descent(tuple(steps), rates.pop(), frozenset(spare))

    def _is_read(self, param: Var, path: _Path, ref: Expr) -> bool:
        """Return whether a variable was read from a reference, at a path into its contents."""
        atom: Expr = param
        for index in reversed(path):
            found = self.defined.get(atom)
            if not isinstance(found, TupleGet) or found.index != index:
                return False
            atom = found.value
        read = self.defined.get(atom)
        return isinstance(read, RefRead) and read.ref is ref


def _content(write: RefWrite) -> Type:
    return type_of(write.value)


def _rewritten(function: Function, descents: Mapping[RefWrite, _Descent]) -> Function:
    spare = frozenset[Var]().union(*(d.spare for d in descents.values()))

    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock):
            return node
        bindings: list[Binding] = []
        for binding in node.bindings:
            if binding.var in spare:
                continue
            descent = descents.get(binding.value) if isinstance(binding.value, RefWrite) else None
            if descent is None:
                bindings.append(binding)
            else:
                bindings += _bindings(binding, descent)
        return replace(node, bindings=tuple(bindings)) if bindings else node.body

    body = rewrite(function.body, change)
    return function if body is function.body else replace(function, body=body)


def _bindings(write: Binding, descent: _Descent) -> list[Binding]:
    """Return the bindings that take the place of a write."""
    span = write.value.span
    bound: list[Binding] = []

    def pack(name: str, fields: tuple[Var, ...]) -> Var:
        types = tuple(f.ty for f in fields if f.ty is not None)
        var = Var(name, TupleType(types), span=span)
        bound.append(Binding(var, Tuple(fields, var.ty, span=span)))
        return var

    grads = tuple(
        s.grad if s.factors is None else pack("factors", s.factors) for s in descent.steps
    )
    operands = (pack("params", tuple(s.param for s in descent.steps)), pack("grads", grads))
    step = Call(descend_in_place, operands, {"lr": descent.lr}, ty=UNIT, span=span)
    return [*bound, Binding(write.var, step)]
