"""Small typed programs around one operator call: its value, its derivative, and the second one.

The derivative is reverse mode over a straight line of operator calls, written here a second time
and as simply as possible, so that the rules are tested apart from the compiler's own pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.derived_types.differentiable import is_differentiable
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Binding, Call, Constant, Expr, Function, Tuple, TupleGet, Var
from pyrelay.ir.module import Module
from pyrelay.ir.names import Names
from pyrelay.ir.op import (
    Clash,
    Expansion,
    NoGradient,
    Op,
    Pointwise,
    Pullback,
    Sample,
    SampleArg,
    TensorSpec,
)
from pyrelay.ir.types import DTYPES, STR, FnType, TensorType, TupleType, Type, is_float
from pyrelay.lower_torch.apply import apply_op
from pyrelay.operators.builder import Builder, Value
from pyrelay.runtime.compile.evaluator import evaluate

CPU = torch.device("cpu")


class SizedSolver:
    """Lets dims be equal if they are for the sizes at hand; a fresh dim is equal to any."""

    settling = True
    guessing = True
    stretches = False

    def __init__(self, names: Names, sizes: Mapping[str, int]) -> None:
        self._names = names
        self.sizes = sizes

    def resolve(self, ty: Type) -> Type:
        return ty

    def resolve_dim(self, dim: Dim) -> Dim:
        return dim

    def unify(self, left: Type, right: Type) -> None:
        match left, right:
            case TensorType(a, x), TensorType(b, y) if len(a) == len(b) and x == y:
                for one, other in zip(a, b, strict=True):
                    self.unify_dims(one, other)
            case TupleType(a), TupleType(b) if len(a) == len(b):
                for one, other in zip(a, b, strict=True):
                    self.unify(one, other)
            case _:
                if left != right:
                    raise Clash(f"{left} is not {right}")

    def unify_dims(self, left: Dim, right: Dim) -> None:
        if (left - right).names() <= self.sizes.keys() and (left - right).evaluate(self.sizes):
            raise Clash(f"{left} is not {right}")

    def fresh_dim(self, hint: str) -> Dim:
        return Dim.of(self._names.fresh(hint))

    def is_found_running(self, dim: Dim) -> bool:
        return False


class Program:
    """A function under construction: parameters, what is computed, and its results."""

    def __init__(self, sizes: Mapping[str, int] | None = None) -> None:
        names = Names()
        self.solver = SizedSolver(names, sizes or {})
        self.builder = Builder(NOWHERE, names, self.solver)
        self.params: list[Var] = []

    def parameter(self, ty: Type) -> Value:
        """Return a new parameter."""
        var = Var(self.builder.names.fresh("x"), ty, span=NOWHERE)
        self.params.append(var)
        return self.builder.value(var)

    def run(self, result: Value, args: Sequence[Any], device: torch.device = CPU) -> Any:
        """Return the result at arguments, by the reference evaluator."""
        return evaluate(self.module(result), "main", list(args), device)

    def module(self, result: Value) -> Module:
        """Return the function of the parameters that gives a result, as the program `main`."""
        body = self.builder.block(result)
        ty = FnType(tuple(_known(p.ty) for p in self.params), result.ty)
        function = Function(tuple(self.params), body, result.ty, ty=ty, span=NOWHERE)
        return Module({"main": function}, {})

    def run_in_torch(self, result: Value, args: Sequence[torch.Tensor]) -> Any:
        """Return the result at arguments, with torch's autograd looking on."""
        values: dict[Expr, Any] = dict(zip(self.params, args, strict=True))
        for binding in self.builder.bindings:
            values[binding.var] = _step(binding.value, values)
        return values[result.atom]


def _known(ty: Type | None) -> Type:
    assert ty is not None
    return ty


def _atom(atom: Expr, values: Mapping[Expr, Any]) -> Any:
    if isinstance(atom, Var):
        return values[atom]
    if isinstance(atom, Tuple):
        return ()
    return Program().run(Builder(NOWHERE).value(atom), ())


def _step(expr: Expr, values: Mapping[Expr, Any]) -> Any:
    match expr:
        case Call(callee=Op() as op, args=args):
            operands = [_atom(a, values) for a in args]
            return apply_op(op, expr, operands, lambda dim: dim.evaluate({}), CPU)
        case Tuple(fields):
            return tuple(_atom(f, values) for f in fields)
        case TupleGet(value, index):
            return _atom(value, values)[index]
        case _:
            raise AssertionError(expr)


def call_program(op: Op, sample: Sample, names: Mapping[int, Dim]) -> tuple[Program, Value]:
    """Return the program of one call; sizes found in `names` become named dims."""
    program = Program({str(dim): size for size, dim in names.items()})
    operands = [_operand(program, arg, names) for arg in sample.operands]
    return program, program.builder.call(op, operands, sample.attrs)


def _operand(program: Program, arg: SampleArg, names: Mapping[int, Dim]) -> Value | float | None:
    if isinstance(arg, TensorSpec):
        shape = tuple(names.get(size, Dim.of(size)) for size in arg.shape)
        return program.parameter(TensorType(shape, DTYPES[arg.dtype]))
    if isinstance(arg, tuple):
        parts = [_operand(program, part, names) for part in arg]
        values = [_as_value(program.builder, part) for part in parts]
        return program.builder.tuple(values)
    if isinstance(arg, str):
        return program.builder.value(Constant(arg, STR, span=NOWHERE))
    return arg


def _as_value(builder: Builder, part: Value | float | None) -> Value:
    if part is None:
        return builder.unit()
    if isinstance(part, Value):
        return part
    return (
        builder.size(part) if isinstance(part, int) else builder.constant(part, DTYPES["float32"])
    )


def float_parameters(program: Program) -> list[Var]:
    """Return the parameters that a derivative is taken by."""
    return [p for p in program.params if isinstance(p.ty, TensorType) and is_float(p.ty.dtype)]


def float_parts(value: Value) -> list[Value]:
    """Return the float tensors of a result, tuples opened."""
    if isinstance(value.ty, TupleType):
        return [p for i in range(len(value.ty.fields)) for p in float_parts(value[i])]
    return [value] if isinstance(value.ty, TensorType) and is_float(value.ty.dtype) else []


def differentiate(program: Program, results: Sequence[Value], by: Sequence[Var]) -> list[Value]:
    """Add the derivative of results: new parameters for their cotangents, and give the cotangents
    of the variables `by`, zero where nothing flows."""
    reverse = _Reverse(program)
    bindings = list(program.builder.bindings)
    for result in results:
        reverse.add(result.atom, program.parameter(result.ty))
    for binding in reversed(bindings):
        reverse.binding(binding)
    return [reverse.total(var) for var in by]


class _Reverse:
    """Cotangents of variables: for a tuple, one for each field that has any."""

    def __init__(self, program: Program) -> None:
        self._builder = program.builder
        self._solver = program.solver
        self._sums: dict[Var, Value] = {}
        self._fields: dict[Var, dict[int, Value]] = {}

    def add(self, atom: Expr, cotangent: Value) -> None:
        if not isinstance(atom, Var) or not is_differentiable(_known(atom.ty)):
            return
        if isinstance(atom.ty, TupleType):
            for index, ty in enumerate(atom.ty.fields):
                if is_differentiable(ty):
                    self._add_field(atom, index, cotangent[index])
            return
        self._solver.unify(cotangent.ty, _known(atom.ty))
        known = self._sums.get(atom)
        self._sums[atom] = cotangent if known is None else known + cotangent

    def _add_field(self, atom: Var, index: int, cotangent: Value) -> None:
        fields = self._fields.setdefault(atom, {})
        fields[index] = fields[index] + cotangent if index in fields else cotangent

    def total(self, var: Var) -> Value:
        return self._sums.get(var) or self._builder.zeros(_known(var.ty))

    def _taken(self, var: Var) -> Value | None:
        if var not in self._fields:
            return self._sums.get(var)
        assert isinstance(var.ty, TupleType)
        fields = self._fields[var]
        return self._builder.tuple([self._field(fields, i, t) for i, t in enumerate(var.ty.fields)])

    def _field(self, fields: Mapping[int, Value], index: int, ty: Type) -> Value:
        if index in fields:
            return fields[index]
        return self._builder.zeros(ty) if is_differentiable(ty) else self._builder.unit()

    def binding(self, binding: Binding) -> None:
        g = self._taken(binding.var)
        if g is None:
            return
        match binding.value:
            case Call(callee=Op() as op) as call:
                self._call(op, call, binding.var, g)
            case Tuple(fields):
                for index, part in enumerate(fields):
                    if is_differentiable(_known(part.ty)):
                        self.add(part, g[index])
            case TupleGet(Var() as value, index):
                self._add_field(value, index, g)
            case other:
                raise AssertionError(other)

    def _call(self, op: Op, call: Call, var: Var, g: Value) -> None:
        if isinstance(op.grad, NoGradient):
            return
        args = tuple(self._builder.value(a) for a in call.args)
        if isinstance(op.grad, Expansion):
            start = len(self._builder.bindings)
            self.add(op.grad.body(args, call.attrs).atom, g)
            for binding in reversed(self._builder.bindings[start:]):
                self.binding(binding)
            return
        wanted = tuple(is_differentiable(_known(a.ty)) for a in call.args)
        parts = op.grad(Pullback(g, self._builder.value(var), args, call.attrs, wanted))
        for arg, part in zip(args, parts, strict=True):
            if part is None or not is_differentiable(arg.ty):
                continue
            if isinstance(op.lowering, Pointwise):
                part = part.sum_to(arg.shape).cast(arg.dtype)
            self.add(arg.atom, part)
