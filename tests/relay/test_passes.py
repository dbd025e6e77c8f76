"""What Relay's own tests of its passes state of texts, of the passes that have their place.

| pass of Relay | where |
|---|---|
| ToANormalForm | below; unit/passes/test_normal_form |
| ToGraphNormalForm: texts of nodes are read | below; test_places |
| ToBasicBlockNormalForm | below |
| DeadCodeElimination | below; unit/passes/test_dce |
| ToCPS: programs that are written so | below |
| Defunctionalization, LambdaLift | below; unit/passes/test_first_order |
| EtaExpand: names and constructors are values | below |
| EliminateCommonSubexpr, FoldConstant | below; unit/passes/test_cse, test_fold |
| FuseOps | unit/kernels/test_known_fusions, test_fuse |
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import relay
from pyrelay.infer import infer
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import post_order
from pyrelay.ir.types import FnType, subtypes
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.partial_eval import partially_evaluated
from pyrelay.passes.simplify.dce import remove_dead
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from tests.relay.reading import HEADER
from tests.unit.passes.programs import bindings_of, body_of, folding

KIND = "Tensor[(10, 10), float32]"
REFERENCE = "let %r = ref(%x); ref_write(%r, ref_read(%r) + 1); ref_read(%r)"
RECURSION = """
def @f(%n: int32) -> int32 { if (%n == 0) { 0 } else { 2 * %n + @f(%n - 1) } }
def @main(%x: int32) { @f(%x) }
"""


def main_of(text: str) -> Any:
    return relay.parse(HEADER + text)["main"]


def normal(text: str) -> Module:
    """Return the module of a text in A-normal form."""
    found = to_anf(infer(relay.parse(HEADER + text).ir))
    verify(found, Stage.ANF)
    return found


def shown(text: str, stage: str = "simplified") -> str:
    """Return `main` at a stage."""
    program = main_of(text).show(stage)
    return program[program.index("def @main") :]


# Normal forms.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (RECURSION, 30),
        (f"def @main(%x: int32) {{ {REFERENCE} }}", 6),
        ("def @main(%x: int32) { let %y = (let %z = %x * 2; %z + 1); %y * %y }", 121),
    ],
)
def test_a_normal_form_has_the_value_of_its_program(text: str, value: int) -> None:
    whole = infer(relay.parse(HEADER + text).ir)
    assert int(evaluate(whole, "main", (5,))) == value
    assert int(evaluate(normal(text), "main", (5,))) == value
    assert to_anf(normal(text)) is not whole


def test_operands_are_named_in_order() -> None:
    found = normal("def @main(%a: int32, %b: int32, %c: int32) { %a + %b * %c }")
    assert body_of(found).splitlines() == [
        "let %multiply: int32 = multiply(%b, %c);",
        "let %add: int32 = add(%a, %multiply);",
        "%add",
    ]


def test_a_condition_is_bound_outside_and_each_branch_binds_its_own() -> None:
    text = "def @main(%a: int32, %b: int32) { if (%a > %b) { %a * %a } else { %b + %b } }"
    assert body_of(normal(text)).splitlines() == [
        "let %greater: bool = greater(%a, %b);",
        "if (%greater) {",
        "  let %multiply: int32 = multiply(%a, %a);",
        "  %multiply",
        "} else {",
        "  let %add: int32 = add(%b, %b);",
        "  %add",
        "}",
    ]


def test_the_gradient_of_a_branch_has_a_normal_form() -> None:
    derived = relay.grad(main_of(f"def @main(%c: bool, %x: {KIND}) {{ sum(if (%c) {{ %x }} "
                                 "else { %x * %x }) }"))  # fmt: skip
    module = derived.program.derived
    verify(module, Stage.DERIVED)
    assert to_anf(module) is module


def test_a_text_of_nodes_is_that_of_lets() -> None:
    nodes = "%0 = %x + %x; %1 = %0 * %0; (%1 + %0, %1)"
    lets = "let %a = %x + %x; let %b = %a * %a; (%b + %a, %b)"
    one, other = (normal(f"def @main(%x: int32) {{ {body} }}") for body in (nodes, lets))
    assert alpha_equal(one.functions["main"], other.functions["main"])
    assert [int(v) for v in evaluate(one, "main", (2,))] == [20, 16]


def test_what_both_branches_use_is_bound_once_in_front_of_them() -> None:
    text = "%0 = %x + %x; if (%c) { %1 = %0 * %x; %1 + %0 } else { %0 }"
    found = normal(f"def @main(%c: bool, %x: int32) {{ {text} }}")
    assert len(bindings_of(found)) == 1
    assert body_of(found).count("add(%x, %x)") == 1


# Dead code.


@pytest.mark.parametrize(
    ("body", "rest"),
    [
        ("let %a = %x * %x; %x", "%x"),
        ("let %a = (let %b = %x * %x; %b + %b); %x", "%x"),
        ("let %f = fn (%n: int32) -> int32 { %f(%n) }; %x", "%x"),
        ("(let %a = 1; 3) + %x", "let %add: int32 = add(3i32, %x);\n%add"),
    ],
)
def test_dead_code_is_gone(body: str, rest: str) -> None:
    found = remove_dead(normal(f"def @main(%x: int32) {{ {body} }}"), "main")
    assert body_of(found) == rest


@pytest.mark.parametrize(
    "body",
    [
        REFERENCE,
        "let %a = %x * %x; %a",
        "let %f = fn (%n: int32) -> int32 { if (%n == 0) { 0 } else { %f(%n - 1) } }; %f(%x)",
        "let %u = @written(%r, %x); %x",
    ],
)
def test_live_code_and_effects_stay(body: str) -> None:
    written = "def @written(%r: ref(int32), %x: int32) { ref_write(%r, %x) }"
    module = normal(f"{written} def @main(%r: ref(int32), %x: int32) {{ {body} }}")
    assert body_of(remove_dead(module, "main")) == body_of(module)


def test_nothing_moves_into_a_function_that_may_be_called_often() -> None:
    text = f"""def @main(%x: {KIND}, %n: int32) -> float32 {{
      let %once = sum(%x * %x);
      let %f = fn (%i: int32, %a: float32) -> float32 {{
        if (%i == 0) {{ %a }} else {{ %f(%i - 1, %a * %once) }} }};
      %f(%n, 1f) }}"""
    assert shown(text).count("sum(") == 1
    assert "sum(" in shown(text).splitlines()[2]


# Programs in continuation-passing style.

CONTINUED = f"""
def @doubled(%x: {KIND}, %k: fn ({KIND}) -> {KIND}) -> {KIND} {{ %k(%x + %x) }}
def @iterated(%f: fn ({KIND}, fn ({KIND}) -> {KIND}) -> {KIND}, %n: nat, %x: {KIND},
              %k: fn ({KIND}) -> {KIND}) -> {KIND} {{
  match (%n) {{
    zero => {{ %k(%x) }},
    succ(%m) => {{ @iterated(%f, %m, %x, fn (%y: {KIND}) {{ %f(%y, %k) }}) }} }} }}
def @main(%x: {KIND}) {{
  @iterated(@doubled, succ(succ(succ(zero))), %x, fn (%y: {KIND}) {{ %y }}) }}
"""


def test_an_iteration_with_continuations_has_its_value_and_gradient() -> None:
    main, x, one = main_of(CONTINUED), torch.rand(10, 10), torch.ones(10, 10)
    value, pull = relay.vjp(main)(x)
    torch.testing.assert_close((value, pull(one)), (8 * x, 8 * one))
    left = str(relay.specialise(main))
    assert left.count("add(") == 3
    assert "fn (" not in left.partition("def @")[2]


@pytest.mark.parametrize(
    "body",
    [
        "let %r = ref(%x); let %k = fn (%u: ()) { ref_read(%r) * %x };"
        " if (%c) { ref_write(%r, %x + %x); %k(()) } else { %k(()) }",
        "if (%c) { %x } else { %x * 2f }",
        "let %y = if (%c) { %x } else { %x * %x }; %y + %y",
    ],
)
def test_references_of_a_program_and_of_its_gradient_are_gone(body: str) -> None:
    main = main_of(f"def @main(%c: bool, %x: float32) {{ {body} }}")
    for function in (main, relay.grad(main)):
        left = relay.specialise(function)
        assert "ref" not in str(left)
        for condition in (True, False):
            torch.testing.assert_close(left(condition, 1.5), function(condition, 1.5))


# Functions.


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%x: int32) { let %f = fn (%g: fn (int32) -> int32, %y: int32) { %g(%y) };"
        " %f(fn (%z: int32) { %z }, %x) }",
        "def @main(%x: int32) { @length(@map(fn (%z: int32) { %z }, Cons(%x, Cons(2, Nil)))) }",
        """def @total(%l: List[int32], %k: fn (int32) -> int32) -> int32 {
          match (%l) { Nil => { %k(0) },
                       Cons(%h, %t) => { @total(%t, fn (%s: int32) { %k(%s + %h) }) } } }
        def @main(%x: int32) { @total(Cons(%x, Cons(2, Nil)), fn (%s: int32) { %s }) }""",
    ],
)
def test_a_first_order_program_passes_no_functions(text: str) -> None:
    whole = normal(text)
    made = first_order(whole, "main")
    types = [p.ty for f in made.functions.values() for p in f.params if p.ty is not None]
    types += [f.result for f in made.functions.values() if f.result is not None]
    assert not any(isinstance(part, FnType) for ty in types for part in subtypes(ty))
    assert int(evaluate(made, "main", (3,))) == int(evaluate(whole, "main", (3,)))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def @main(%x: int32) { let %f = fn (%y: int32) { %x + %y }; %f(%x) }", 2),
        ("def @main(%x: int32) { let %f = fn (%y: int32) { fn (%z: int32) { %y + %z } };"
         " %f(%x)(2) }", 4),  # what is returned is data, which a function of its own applies
        ("def @main(%x: int32) { let %f = fn (%i: int32) -> int32"
         " { if (%i == 0) { %x } else { %f(%i - 1) } }; %f(%x) }", 2),
    ],
)  # fmt: skip
def test_local_functions_are_lifted(text: str, count: int) -> None:
    made = first_order(normal(text), "main")
    assert len(made.functions) == count
    bodies = (f.body for f in made.functions.values())
    assert not any(isinstance(n, Function) for body in bodies for n in post_order(body))


def test_names_of_functions_and_constructors_are_values() -> None:
    text = """def @up(%x: int32) { %x + 1 }
    def @main(%x: int32) { let %p = (@up, Cons); @hd(%p.1(%p.0(%x), Nil)) }"""
    assert main_of(text)(4) == 5


# Common values, constants.


def test_a_value_that_is_written_twice_is_computed_once() -> None:
    text = f"def @main(%x: {KIND}) {{ (nn.relu(%x) + 1f) * (nn.relu(%x) + 1f) }}"
    program = shown(text)
    assert program.count("relu(") == program.count("add(") == 1


def test_a_shape_is_constant() -> None:
    left = relay.specialise(main_of("def @main(%x: Tensor[(1, 2, 3), float32]) { shape_of(%x) }"))
    assert "tensor[(3,), int32][1, 2, 3]" in str(left)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("if (True) { %x } else { %x * %x }", "%x"),
        ("let %t = (1, (2, %x)); %t.1.1", "%x"),
        ("%x + (let %a = 2; %a * 3)", "add(%x, 6i32)"),
        ("%x + sum(concatenate((full(1, shape=[2], dtype=\"int32\"), "
         "full(2, shape=[1], dtype=\"int32\"))))", "add(%x, 4i32)"),
    ],
)  # fmt: skip
def test_what_is_constant_is_computed(body: str, left: str) -> None:
    module = expand_transforms(normal(f"def @main(%x: int32) {{ {body} }}"))
    assert left in body_of(partially_evaluated(module, "main", folding)).splitlines()[0]
