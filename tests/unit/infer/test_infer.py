"""Inference finds types, shapes and dtypes, and writes the casts that programs leave out."""

from __future__ import annotations

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.diagnostics.source import NOWHERE
from pyrelay.infer import infer
from pyrelay.ir.expr import (
    Binding,
    Call,
    Callee,
    Constant,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Tuple,
    Var,
)
from pyrelay.ir.module import Module
from pyrelay.ir.traverse import free_vars
from pyrelay.ir.types import FnType, show
from pyrelay.operators.primitive.arithmetic import add, subtract
from pyrelay.operators.primitive.compare import less
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text


def typed(source: str, *, strict: bool = False) -> dict[str, Function]:
    """Return the functions of a program after inference."""
    return dict(infer(parse_module(source), strict=strict).functions)


def result_of(source: str, name: str = "f") -> str:
    """Return the result type of a function, as a user would write it."""
    ty = typed(source)[name].ty
    assert isinstance(ty, FnType)
    return show(ty.result)


def problems_of(source: str) -> tuple[str, ...]:
    """Return the codes of the mistakes in a program."""
    with pytest.raises(CheckError) as caught:
        infer(parse_module(source))
    return caught.value.codes


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("add(%x, 1)", "Tensor[Float, (N, 3)]"),
        ("divide(%n, 2)", "Float"),
        ("multiply(%n, 2.5)", "Float"),
        ("floor_divide(%n, 2)", "Int"),
        ("less(%x, 0)", "Tensor[Bool, (N, 3)]"),
        ("add(%x, %n)", "Tensor[Float, (N, 3)]"),
        ("matmul(%x, transpose(%x, dim0=0, dim1=1))", "Tensor[Float, (N, N)]"),
        ("reshape(%x, shape=(-1,))", "Tensor[Float, (3*N,)]"),
        ("cat((%x, %x), dim=0)", "Tensor[Float, (2*N, 3)]"),
        ("sum(%x, dim=1)", "Tensor[Float, (N,)]"),
        ("dim_size(%x, dim=0)", 'Dim("N")'),
        ("add(multiply(dim_size(%x, dim=0), 2), 1)", 'Dim("2*N + 1")'),
        ("(%x, 1, 2.0, True)", "tuple[Tensor[Float, (N, 3)], 1, Float, Bool]"),
    ],
)
def test_expressions_have_the_types_of_their_operators(body: str, expected: str) -> None:
    source = f"def @f[N: Dim](%x: Tensor[(N, 3), float32], %n: int64) {{ {body} }}"
    assert result_of(source) == expected


def test_a_number_takes_the_dtype_of_the_tensor_it_meets() -> None:
    for dtype in ("bfloat16", "float64"):
        assert dtype in result_of(f"def @f(%x: Tensor[(3,), {dtype}]) {{ multiply(%x, 2) }}")


def test_a_named_number_is_exact_at_every_dtype_it_meets() -> None:
    module = infer(
        parse_module(
            "def @f(%x: Tensor[(3,), float32], %y: Tensor[(3,), float64]) {"
            " let %c = 0.1; (multiply(%x, %c), multiply(%y, %c)) }"
        )
    )
    text = to_text(module)
    assert "0.1f32" in text
    assert "0.1f64" in text
    assert "cast" not in text


def test_two_widths_of_one_kind_are_refused() -> None:
    source = "def @f(%x: Tensor[(3,), float32], %y: Tensor[(3,), float64]) { add(%x, %y) }"
    assert problems_of(source) == ("RL210",)


def test_a_loop_carries_one_type() -> None:
    source = """def @f(%x: Tensor[(3,), float32]) {
      let rec %while_loop = fn (%total, %i) {
        if (less(%i, 10)) { %while_loop(add(%total, sum(%x)), add(%i, 1)) } else { (%total, %i) }
      };
      %while_loop(0.0, 0)
    }"""
    assert result_of(source) == "tuple[Float, Int]"


def test_a_recursion_that_changes_a_shape_is_refused() -> None:
    source = """def @f(%x: Tensor[(3,), float32]) {
      let rec %while_loop = fn (%h, %i) {
        if (less(%i, 10)) { %while_loop(cat((%h, %h)), add(%i, 1)) } else { %h }
      };
      %while_loop(%x, 0)
    }"""
    assert problems_of(source) == ("RL202",)  # its name makes no loop of it


def test_a_function_is_used_at_several_sizes() -> None:
    source = """
    def @twice[N: Dim](%x: Tensor[(N,), float32]) { cat((%x, %x)) }
    def @f[M: Dim](%x: Tensor[(M,), float32]) { @twice(@twice(%x)) }
    """
    assert result_of(source) == "Tensor[Float, (4*M,)]"


def test_a_local_function_without_types_is_used_at_several_types() -> None:
    source = """def @f(%x: Tensor[(3,), float32], %y: Tensor[(2, 2), float64]) {
      let %double = fn (%v) { multiply(%v, 2) };
      (%double(%x), %double(%y))
    }"""
    assert result_of(source) == "tuple[Tensor[Float, (3,)], Tensor[float64, (2, 2)]]"


def test_copies_of_a_recursive_function_call_themselves_even_where_places_tell_nothing() -> None:
    loop, value, count = (Var(n, span=NOWHERE) for n in ("loop", "value", "count"))

    def call(callee: Callee, *args: Expr) -> Call:
        return Call(callee, args, span=NOWHERE)

    def number(value: float) -> Constant:
        return Constant(value, span=NOWHERE)

    again = call(loop, call(add, value, value), call(subtract, count, number(1)))
    body = If(call(less, count, number(1)), value, again, span=NOWHERE)
    definition = Binding(loop, Function((value, count), body, name="loop", span=NOWHERE))
    uses = Tuple(
        (call(loop, number(1.0), number(3)), call(loop, number(2), number(3))), span=NOWHERE
    )
    block = LetBlock((definition,), uses, Flavour.REC, span=NOWHERE)
    module = infer(Module({"f": Function((), block, name="f", span=NOWHERE)}, {}))
    ty = module.functions["f"].ty
    assert isinstance(ty, FnType)
    assert show(ty.result) == "tuple[Float, Int]"
    assert not free_vars(module.functions["f"])


def test_the_type_of_a_lambda_flows_in_from_where_it_is_called() -> None:
    source = """
    def @apply[N: Dim](%g: fn (Tensor[(N,), float32]) -> Tensor[(N,), float32],
                       %x: Tensor[(N,), float32]) { %g(%x) }
    def @f(%x: Tensor[(5,), float32]) { @apply(fn (%v) { add(%v, 1) }, %x) }
    """
    assert result_of(source) == "Tensor[Float, (5,)]"


def test_recursion_finds_its_result_type() -> None:
    source = """def @f(%n: int64) {
      if (less(%n, 1)) { 1.0 } else { multiply(@f(subtract(%n, 1)), 2) }
    }"""
    assert result_of(source) == "Float"


def test_mutual_recursion_is_one_group() -> None:
    source = """
    def @even(%n: int64) { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
    def @odd(%n: int64) { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
    """
    assert result_of(source, "even") == "Bool"
    assert result_of(source, "odd") == "Bool"


def test_an_annotated_function_may_call_itself_at_another_size() -> None:
    source = """def @f[N: Dim](%x: Tensor[(N,), float32], %n: int64) -> float32 {
      if (less(%n, 1)) { sum(%x) } else { @f(cat((%x, %x)), subtract(%n, 1)) }
    }"""
    assert result_of(source) == "Float"


def test_an_equation_that_types_do_not_decide_becomes_an_assumption() -> None:
    source = """def @f[N: Dim, M: Dim](%x: Tensor[(N,), float32], %y: Tensor[(M,), float32]) {
      add(%x, %y)
    }"""
    (assumption,) = typed(source)["f"].assumptions
    assert {str(assumption.left), str(assumption.right)} == {"N", "M"}
    with pytest.raises(CheckError) as caught:
        typed(source, strict=True)
    assert caught.value.codes == ("RL214",)


def test_an_assumption_reaches_the_caller_unless_its_sizes_decide_it() -> None:
    add = """def @add2[N: Dim, M: Dim](%x: Tensor[(N,), float32], %y: Tensor[(M,), float32]) {
      add(%x, %y)
    }"""
    same = "def @f[K: Dim](%x: Tensor[(K,), float32]) { @add2(%x, %x) }"
    assert typed(add + same)["f"].assumptions == ()
    open_ = """def @f[K: Dim, L: Dim](%x: Tensor[(K,), float32], %y: Tensor[(L,), float32]) {
      @add2(%x, %y)
    }"""
    assert len(typed(add + open_)["f"].assumptions) == 1
    wrong = """def @f(%x: Tensor[(3,), float32], %y: Tensor[(4,), float32]) { @add2(%x, %y) }"""
    assert problems_of(add + wrong) == ("RL202",)


def test_branches_of_different_sizes_give_a_number_and_of_different_shapes_an_error() -> None:
    assert result_of("def @f(%c: bool) { if (%c) { 1 } else { 2 } }") == "Int"
    source = """def @f(%c: bool, %x: Tensor[(3,), float32], %y: Tensor[(4,), float32]) {
      if (%c) { %x } else { %y }
    }"""
    assert problems_of(source) == ("RL204",)


def test_a_condition_is_one_bool() -> None:
    source = "def @f(%x: Tensor[(3,), float32]) { if (less(%x, 0)) { 1 } else { 2 } }"
    assert problems_of(source) == ("RL207",)
    assert problems_of("def @f(%n: int64) { if (%n) { 1 } else { 2 } }") == ("RL207",)


def test_independent_mistakes_are_all_reported_and_their_consequences_are_not() -> None:
    source = """def @f(%x: Tensor[(3, 4), float32], %y: Tensor[(5,), float32]) {
      let %a = matmul(%x, %x);
      let %b = add(%y, %x);
      add(%a, %b)
    }"""
    assert problems_of(source) == ("RL201", "RL201")


def test_calls_with_wrong_arguments_are_refused() -> None:
    callee = "def @g(%x: Tensor[(3,), float32]) { sum(%x) }"
    assert problems_of(callee + "def @f(%x: Tensor[(4,), float32]) { @g(%x) }") == ("RL202",)
    assert problems_of(callee + "def @f(%x: Tensor[(3,), float32]) { @g(%x, %x) }") == ("RL203",)
    assert problems_of("def @f(%x: Tensor[(3,), float32]) { %x(1) }") == ("RL208",)


def test_a_size_passed_where_a_number_is_wanted_is_converted() -> None:
    source = """
    def @g(%x: float32) { add(%x, 1) }
    def @f[N: Dim](%x: Tensor[(N,), float32]) { @g(dim_size(%x, dim=0)) }
    """
    assert "cast" in to_text(infer(parse_module(source)))


def test_a_recursive_function_may_return_different_numbers() -> None:
    source = """def @f(%n: int64) {
      if (less(%n, 0)) { 0 } else { if (less(%n, 1)) { 1 } else { @f(subtract(%n, 2)) } }
    }"""
    assert result_of(source) == "Int"


def test_the_parameters_of_a_differentiated_lambda_are_typed_by_its_calls() -> None:
    source = """def @f(%x: float32) {
      let %g = grad(fn (%y) { multiply(multiply(%x, %y), %y) });
      %g(%x)
    }"""
    assert result_of(source) == "Float"


def test_functions_without_types_are_polymorphic() -> None:
    source = """
    def @id(%x) { %x }
    def @apply(%g, %x) { %g(%x) }
    def @f(%x: Tensor[(5,), float32]) { (@id(%x), @id(()), @apply(fn (%v) { %v + 1.0 }, %x)) }
    """
    assert result_of(source) == "tuple[Tensor[Float, (5,)], None, Tensor[Float, (5,)]]"
    found = typed(source)["apply"].ty
    assert isinstance(found, FnType)
    assert show(found) == "Fn[[Fn[[T1], T2], T1], T2]"
