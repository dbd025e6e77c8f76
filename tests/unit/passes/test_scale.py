"""Every pass takes long and deep programs, without recursion and in linear time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.equality import alpha_equal, structural_hash
from pyrelay.ir.expr import Binding, Call, Expr, Flavour, Function, GlobalVar, If, LetBlock, Var
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import Op
from pyrelay.ir.types import BOOL, FLOAT, FnType, Type
from pyrelay.ir.verify import Stage, verify
from pyrelay.operators.primitive.arithmetic import add
from pyrelay.operators.primitive.math import sin
from pyrelay.passes.closures import first_order
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.simplify.cse import share
from pyrelay.passes.simplify.dce import remove_dead
from pyrelay.passes.simplify.fold import fold
from pyrelay.passes.simplify.inline import inline
from pyrelay.passes.simplify.simplify import simplify
from tests.unit.kernels.kernels import in_regions

X, Y, B = (Var(n, t, span=NOWHERE) for n, t in (("x", FLOAT), ("y", FLOAT), ("b", BOOL)))
UNARY = FnType((FLOAT,), FLOAT)


def call(callee: Op | Var | GlobalVar, *args: Expr) -> Call:
    return Call(callee, args, ty=FLOAT, span=NOWHERE)


def function(params: tuple[Var, ...], body: Expr) -> Function:
    types: tuple[Type, ...] = tuple(p.ty for p in params if p.ty is not None)
    return Function(params, body, FLOAT, ty=FnType(types, FLOAT), span=NOWHERE)


def chain(count: int) -> Module:
    """Return a tree that becomes a chain of bindings."""
    body: Expr = X
    for _ in range(count // 2):
        body = call(add, call(sin, body), Y)
    return Module({"main": function((X, Y), body)}, {})


def nested_ifs(count: int) -> Module:
    """Return conditionals inside conditionals, each in a branch of the one before."""
    conditions = tuple(Var(f"b{i}", BOOL, span=NOWHERE) for i in range(count))
    body: Expr = X
    for condition in conditions:
        other = call(add, If(B, X, Y, FLOAT, span=NOWHERE), X)
        body = If(condition, call(sin, body), other, FLOAT, span=NOWHERE)
    return Module({"main": function((X, Y, B, *conditions), body)}, {})


def nested_functions(count: int) -> Module:
    """Return functions inside functions, each called twice."""
    body: Expr = call(sin, X)
    for i in range(count):
        param, name = Var(f"p{i}", FLOAT, span=NOWHERE), Var(f"f{i}", UNARY, span=NOWHERE)
        inner = function((param,), call(add, body, param))
        uses = call(add, call(name, Y), call(name, X))
        body = LetBlock((Binding(name, inner),), uses, Flavour.PURE, FLOAT, span=NOWHERE)
    return Module({"main": function((X, Y), body)}, {})


def many_functions(count: int) -> Module:
    """Return functions each of which calls the next."""
    functions: dict[str, Function] = {}
    for i in range(count):
        param = Var("p", FLOAT, span=NOWHERE)
        following = GlobalVar(f"f{i + 1}", UNARY, span=NOWHERE)
        body = call(following, call(sin, param)) if i < count - 1 else call(sin, param)
        functions["main" if i == 0 else f"f{i}"] = function((param,), body)
    return Module(functions, {})


PASSES: dict[str, Callable[[Module], Module]] = {
    "inline": lambda m: inline(m, "main"),
    "fold": fold,
    "share": share,
    "remove dead": lambda m: remove_dead(m, "main"),
    "flavours": with_flavours,
    "simplify": lambda m: simplify(m, "main"),
    "first order": lambda m: first_order(m, "main"),
    "regions": lambda m: in_regions(m),
}
PROGRAMS = {
    "chain": (chain, 4_000, 100_000),
    "nested ifs": (nested_ifs, 1_000, 10_000),
    "nested functions": (nested_functions, 300, 2_000),
    "many functions": (many_functions, 500, 5_000),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pass_takes_a_large_program(program: str, name: str) -> None:
    make, count, _ = PROGRAMS[program]
    verify(PASSES[name](to_anf(make(count))), Stage.ANF)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_passes_take_a_huge_program(program: str) -> None:
    make, _, count = PROGRAMS[program]
    module = to_anf(make(count))
    for run in PASSES.values():
        verify(run(module), Stage.ANF)


@pytest.mark.parametrize("program", PROGRAMS)
def test_equality_and_hash_take_a_large_program(program: str) -> None:
    make, count, _ = PROGRAMS[program]
    module = to_anf(make(count))
    assert alpha_equal(module, to_anf(make(count)))
    assert structural_hash(module) == structural_hash(to_anf(make(count)))
