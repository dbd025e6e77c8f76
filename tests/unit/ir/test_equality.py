"""Equality by structure ignores names and places, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from pyrelay.diagnostics.source import NOWHERE, SourceFile, Span
from pyrelay.ir.equality import alpha_equal, structural_hash
from pyrelay.ir.expr import Call, Constant, Expr, Flavour, LetBlock, TensorData, Tuple, Var
from pyrelay.ir.module import Module
from pyrelay.ir.types import FLOAT, float32
from pyrelay.operators.primitive.arithmetic import add
from pyrelay.text.parser import parse_module

LIST = "type List[a] { Nil, Cons(a, List[a]) }\n"


def same(left: str, right: str) -> bool:
    """Return whether two texts are equal, and check that their hashes say so too."""
    a, b = parse_module(left), parse_module(right)
    equal = alpha_equal(a, b)
    assert equal == alpha_equal(b, a)
    assert equal == (structural_hash(a) == structural_hash(b))
    return equal


def test_names_of_variables_do_not_matter() -> None:
    assert same(
        "def @f(%x: float32) -> float32 { let %a = %x + %x; %a }",
        "def @f(%y: float32) -> float32 { let %b = %y + %y; %b }",
    )


def test_which_variable_is_meant_does_matter() -> None:
    assert not same(
        "def @f(%x: float32, %y: float32) -> float32 { %x - %y }",
        "def @f(%x: float32, %y: float32) -> float32 { %y - %x }",
    )


def test_names_of_type_parameters_do_not_matter() -> None:
    def text(first: str, second: str, used: str) -> str:
        shape = f"({first}, {second})"
        return f"""def @f[{first}: Dim, {second}: Dim](%x: Tensor[{shape}, float32]) -> int64 {{
          size(dim={used})
        }}"""

    assert same(text("N", "M", "M + N * 2"), text("B", "A", "A + B * 2"))
    assert not same(text("N", "M", "M"), text("N", "M", "N"))


def test_an_inner_type_parameter_may_hide_an_outer_one() -> None:
    template = """def @f[N: Dim](%x: Tensor[(N,), float32]) -> int64 {{
      let %g = fn [{inner}: Dim](%y: Tensor[({inner},), float32]) -> int64 {{ size(dim={used}) }};
      %g(%x)
    }}"""
    hidden = template.format(inner="N", used="N")
    assert same(hidden, template.format(inner="M", used="M"))
    assert not same(hidden, template.format(inner="M", used="N"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("0.0", "-0.0"),
        ("1", "1.0"),
        ("1", "True"),
        ("1f32", "1f64"),
        ("if (%b) { 1 } else { 2 }", "if (%b) { 2 } else { 1 }"),
        ("(1, 2)", "(1, 2, 3)"),
        ("sum(%x, dim=0)", "sum(%x, dim=1)"),
        ("sum(%x, dim=0)", "mean(%x, dim=0)"),
        ("{ let %a = 1; %a }", "{ let! %a = 1; %a }"),
        ("match (%b) { True => 1, _ => 2 }", "match (%b) { False => 1, _ => 2 }"),
        ("match (%b) { True => 1, _ => 2 }", "match? (%b) { True => 1, _ => 2 }"),
        ("match (1) { %n if %b => 1, _ => 2 }", "match (1) { %n => 1, _ => 2 }"),
        ("ref(1)", "ref_read(ref(1))"),
        ("Nil()", "Cons(1, Nil())"),
        ("grad(@f)", "vjp(@f)"),
    ],
)
def test_a_difference_is_seen(left: str, right: str) -> None:
    head = LIST + "def @f(%x: Tensor[(2, 3), float32], %b: bool) "
    assert same(head + "{ " + left + " }", head + "{ " + left + " }")
    assert not same(head + "{ " + left + " }", head + "{ " + right + " }")


def test_places_do_not_matter() -> None:
    text = "def @f(%x: float32) -> float32 { %x + 1.0 }"
    assert same(text, "\n\n" + text.replace("%x", "  %x"))


def test_the_order_of_definitions_does_not_matter() -> None:
    one, other = "def @f() { 1 }", "def @g() { 2 }"
    assert same(one + other, other + one)


def test_a_free_variable_is_equal_only_to_itself() -> None:
    x, y = Var("x", FLOAT, span=NOWHERE), Var("x", FLOAT, span=NOWHERE)
    left, right = Tuple((x,), span=NOWHERE), Tuple((y,), span=NOWHERE)
    assert alpha_equal(left, replace(left, span=Span(SourceFile("f", "ab"), 0, 1)))
    assert not alpha_equal(left, right)


def test_constant_tensors_are_compared_by_their_bytes() -> None:
    def constant(data: bytes) -> Constant:
        return Constant(TensorData(float32, (1,), data), span=NOWHERE)

    assert alpha_equal(constant(b"\0\0\0\0"), constant(b"\0\0\0\0"))
    assert not alpha_equal(constant(b"\0\0\0\0"), constant(b"\0\0\0\1"))
    assert structural_hash(constant(b"\0\0\0\0")) != structural_hash(constant(b"\0\0\0\1"))


def test_a_hash_is_the_same_in_every_process() -> None:
    text = LIST + "def @f[N: Dim](%x: Tensor[(N,), float32]) { match (Nil()) { Nil() => sum(%x) } }"
    code = (
        "import sys; from pyrelay.text.parser import parse_module;"
        "from pyrelay.ir.equality import structural_hash;"
        "print(structural_hash(parse_module(sys.argv[1])))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, text],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {structural_hash(parse_module(text))}


def test_deep_expressions_are_compared_without_recursion() -> None:
    def tower() -> Expr:
        x = Var("x", FLOAT, span=NOWHERE)
        expr: Expr = x
        for _ in range(20_000):
            expr = Call(add, (expr, Constant(1.0, FLOAT, span=NOWHERE)), ty=FLOAT, span=NOWHERE)
        return LetBlock((), expr, Flavour.PURE, span=NOWHERE)

    left = tower()
    assert alpha_equal(left, left)
    assert not alpha_equal(left, tower())  # its free variable is another one
    assert alpha_equal(Module({}, {}), Module({}, {}))
