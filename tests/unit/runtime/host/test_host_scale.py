"""Host code takes work that grows with the program, at any nesting, and is always the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.expr import Binding, Call, Constant, Expr, Flavour, Function, If, LetBlock, Var
from pyrelay.ir.module import Module
from pyrelay.ir.types import BOOL, FLOAT, INT, FnType, TensorType, Type, float32, tensor_type
from pyrelay.operators.primitive.arithmetic import add
from pyrelay.operators.primitive.compare import less
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import compile_module
from tests.steps import calls_of
from tests.unit.runtime.host.programs import CPU, compiled

pytestmark = pytest.mark.host("compiles host code itself")


def var(name: str, ty: Type) -> Var:
    return Var(name, ty, span=NOWHERE)


def integer(value: int) -> Constant:
    return Constant(value, INT, span=NOWHERE)


def block(bindings: list[Binding], body: Expr) -> Expr:
    return LetBlock(tuple(bindings), body, Flavour.PURE, ty=body.ty, span=NOWHERE)


def module_of(params: tuple[Var, ...], body: Expr) -> Module:
    ty = FnType(tuple(p.ty for p in params if p.ty is not None), body.ty or INT)
    return Module({"main": Function(params, body, body.ty, ty=ty, span=NOWHERE)}, {})


def chain(length: int) -> Module:
    ty = tensor_type(float32, 2)
    x = var("x", ty)
    bindings: list[Binding] = []
    last = x
    for _ in range(length):
        call = Call(add, (last, x), ty=ty, span=NOWHERE)
        last = var("y", ty)
        bindings.append(Binding(last, call))
    return module_of((x,), block(bindings, last))


def test_a_hundred_thousand_bindings_compile() -> None:
    program = compile_module(chain(100_000), "main", CPU)
    assert program(torch.ones(2)).tolist() == [100_001.0, 100_001.0]


def test_the_work_of_compiling_grows_with_the_length() -> None:
    def calls(length: int) -> int:
        module = chain(length)
        return calls_of(lambda: compile_module(module, "main", CPU))

    calls(10)
    assert calls(10_000) < 12 * calls(1_000)


def nested(depth: int, *, deep_arm: bool, in_tail: bool) -> Module:
    """`depth` ifs, each inside an arm of the one before: it goes into the first `x` of them."""
    x = var("x", INT)
    body: Expr = integer(depth)
    for level in reversed(range(depth)):
        limits = (integer(level), x) if deep_arm else (x, integer(level + 1))
        test = Binding(var("c", BOOL), Call(less, limits, ty=BOOL, span=NOWHERE))
        arms = (body, integer(level)) if deep_arm else (integer(level), body)
        node = If(test.var, *arms, ty=INT, span=NOWHERE)
        if in_tail:
            body = block([test], node)
        else:
            result, last = var("r", INT), var("s", INT)
            more = Call(add, (result, integer(1)), ty=INT, span=NOWHERE)
            body = block([test, Binding(result, node), Binding(last, more)], last)
    return module_of((x,), body)


@pytest.mark.parametrize("deep_arm", [True, False])
@pytest.mark.parametrize("in_tail", [True, False])
def test_ten_thousand_nested_ifs_compile(deep_arm: bool, in_tail: bool) -> None:
    depth = 10_000
    module = nested(depth, deep_arm=deep_arm, in_tail=in_tail)
    program = compile_module(module, "main", CPU)
    for x in (0, 1, 500, depth, depth + 1):
        went = min(x, depth)
        returned = 0 if in_tail else min(went + 1, depth)
        assert program(x) == went + returned
    assert evaluate(module, "main", [500]) == program(500)
    assert program.source.count("\n") > depth


def test_long_chains_of_calls_run() -> None:
    lines = [f"def @f{i}(%n: int64) -> int64 {{ add(@f{i + 1}(%n), 1) }}" for i in range(1000)]
    source = "\n".join([*lines, "def @f1000(%n: int64) -> int64 { %n }"])
    assert compiled(source, "f0")(5) == 1005


def loops(depth: int) -> str:
    """Loops in loops; each runs twice, and the innermost counts."""
    body = "add(%t, 1)"
    for level in reversed(range(depth)):
        body = f"""{{
          let rec %loop{level} = fn (%i{level}: int64, %t: int64) -> int64 {{
            if (less(%i{level}, {2 if level < 10 else 1})) {{
              let %u{level} = {body};
              %loop{level}(add(%i{level}, 1), %u{level})
            }} else {{ %t }}
          }};
          %loop{level}(0, %t)
        }}"""
    return f"def @main(%t: int64) -> int64 {{ {body} }}"


@pytest.mark.parametrize("depth", [3, 30])
def test_loops_nest_more_deeply_than_pythons_may(depth: int) -> None:
    assert compiled(loops(depth))(0) == 2 ** min(depth, 10)


def jumping_loops(depth: int) -> str:
    """Loops in tail position of loops; the innermost goes on with any of them."""
    names = [f"%loop{level}" for level in range(depth)]
    body = "%n"
    for level in reversed(range(depth)):
        jump = f"%loop{level}(add(%n, 1))"
        body = f"if (equal(mod(%n, {depth + 1}), {level})) {{ {jump} }} else {{ {body} }}"
    body = f"if (less(90, %n)) {{ %n }} else {{ {body} }}"
    for name in reversed(names):
        body = f"let rec {name} = fn (%n: int64) -> int64 {{ {body} }}; {name}(add(%n, 1))"
    return f"def @main(%n: int64) -> int64 {{ {body} }}"


def test_jumps_cross_functions_taken_out_of_line() -> None:
    source = jumping_loops(40)
    program = compiled(source)
    assert "__part" in program.source
    for n in range(-60, 50, 7):
        assert program(n) == evaluate_text(source, n)


def evaluate_text(source: str, n: int) -> int:
    from tests.unit.runtime.host.programs import prepared

    return evaluate(prepared(source), "main", [n])


DEEP_PARTS = """def @main(%n: int64) -> int64 {{
  if (less(%n, 1)) {{ 0 }} else {{ let %r = {body}; add(%r, 1) }}
}}"""


def test_recursion_from_an_arm_taken_out_of_line_runs_at_any_depth() -> None:
    body = "@main(subtract(%n, 1))"
    for level in range(130):
        body = f"if (less({level}, %n)) {{ add({body}, 0) }} else {{ @main(subtract(%n, 1)) }}"
    program = compiled(DEEP_PARTS.format(body=body))
    assert "__part" in program.source
    assert program(10_000) == 10_000


SCRIPT = """
import torch
from tests.unit.runtime.host.test_host_scale import EVERYTHING
from tests.unit.runtime.host.programs import compiled
print(compiled(EVERYTHING).source)
"""

EVERYTHING = """
type List[a] { Nil, Cons(a, List[a]) }
def @main[N: Dim](%x: Tensor[(N, 3), float32], %n: int64) -> float32 {
  let rec %loop = fn (%i: int64, %h: Tensor[(N, 3), float32]) -> Tensor[(N, 3), float32] {
    if (less(%i, %n)) { %loop(add(%i, 1), tanh(add(%h, 0.5))) } else { %h }
  };
  let %y = %loop(0, %x);
  let %z = add(%y, zeros(size=(N, 3), dtype=float32));
  add(@total(Cons(sum(%z), Nil())), @deep(%n))
}
def @total(%xs: List[float32]) -> float32 {
  match (%xs) { Nil => 0.0, Cons(%x, %rest) => add(%x, @total(%rest)) }
}
def @deep(%n: int64) -> float32 {
  if (less(%n, 1)) { 1.5 } else { multiply(@deep(subtract(%n, 1)), 0.5) }
}
"""


def test_the_text_is_the_same_in_every_process() -> None:
    texts = set[str]()
    for seed in ("0", "12345"):
        found = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(found.stdout)
    assert len(texts) == 1
    assert "def total__steps(xs):" in texts.pop()


def test_no_value_is_kept_longer_than_torch_would() -> None:
    """A chain holds two tensors at a time, not all."""
    alive = 0
    most = 0

    class Counted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal alive, most
            found = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(found, Counted):
                alive += 1
                most = max(most, alive)
            return found

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    x = torch.ones(2).as_subclass(Counted)
    alive = most = 1
    compile_module(chain(20), "main", CPU)(x)
    assert most <= 4


def test_float_types_are_tensors_of_rank_0() -> None:
    assert TensorType((), float32) == FLOAT
