"""The examples of "Anatomy of Partial Evaluation in a Deep Learning DSL", as programs: unknown,
static, static functions, open terms, and the units of operators."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from pyrelay import Float, relay
from tests.unit.passes.partial_eval.residuals import left

NUMBERS = "%x: float32, %y: float32, %z: float32"
X, Y, Z = torch.tensor(1.5), torch.tensor(-2.0), torch.tensor(0.5)


def code(expression: str, *, fast_math: bool = False, is_number: bool = True) -> str:
    """Return what is left of an expression of three unknown numbers, without the types."""
    text = f"def @main({NUMBERS}) {{ {expression} }}"
    body = left(text, *[(X, Y, Z)] * is_number, fast_math=fast_math)
    return "\n".join(line.strip().replace(": float32", "") for line in body.splitlines())


def lambda_(name: str, body: str) -> str:
    return f"(fn (%{name}: float32) {{ {body} }})"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # 1 + 2 is 3: static.
        ("1.0f32 + 2.0f32", "3.0f32"),
        # x + 1 has an unknown operand.
        ("%x + 1.0f32", "let %add = add(%x, 1.0f32);\n%add"),
        # (\x. x + y) 2, in which y is free, is 2 + y.
        (f"{lambda_('a', '%a + %y')}(2.0f32)", "let %add = add(2.0f32, %y);\n%add"),
        # The same function of an unknown number.
        (f"{lambda_('a', '%a + %y')}(%x)", "let %add = add(%x, %y);\n%add"),
        # A function that gives a static value, whatever its argument is.
        (f"{lambda_('a', '3.0f32')}(%x)", "3.0f32"),
        # z + z, where z becomes k.
        (f"{lambda_('z', '%z + %z')}(4.0f32)", "8.0f32"),
        (f"{lambda_('z', '%z + %z')}(%x)", "let %add = add(%x, %x);\n%add"),
        # \x. (\y. x + y + 1) x: the depth of the body changes.
        (f"{lambda_('b', '%x + %b + 1.0f32')}(%x)",
         "let %add = add(%x, %x);\nlet %add_1 = add(%add, 1.0f32);\n%add_1"),
        # One parameter after the other.
        (f"{lambda_('a', lambda_('b', '%a + %b'))}(1.0f32)(2.0f32)", "3.0f32"),
        (f"{lambda_('a', lambda_('b', '%a + %b'))}(%y)(%x)", "let %add = add(%y, %x);\n%add"),
        # z + s z + s s z, of which the middle one becomes static: the others stay what they are.
        (lambda_("a", lambda_("b", lambda_("c", "%c + %b + %a"))) + "(%x)(3.0f32)(%z)",
         "let %add = add(%z, 3.0f32);\nlet %add_1 = add(%add, %x);\n%add_1"),
        # An open sum is tried again once its variable is known, under another binder.
        (f"{lambda_('a', lambda_('b', '(%a + %b) * %x') + '(2.0f32)')}(3.0f32)",
         "let %multiply = multiply(5.0f32, %x);\n%multiply"),
        # A function that is passed and applied inside another.
        ("(fn (%f: fn(float32) -> float32) { %f(%f(2.0f32)) })"
         f"({lambda_('a', '%a * %a')})", "16.0f32"),
        # An operator is a static function, too.
        ("(fn (%f: fn(float32, float32) -> float32) { %f(%x, %f(1.0f32, 2.0f32)) })"
         "(fn (%a: float32, %b: float32) { %a + %b })", "let %add = add(%x, 3.0f32);\n%add"),
    ],
)  # fmt: skip
def test_an_example_leaves_what_is_not_known(expression: str, expected: str) -> None:
    assert code(expression) == expected


@pytest.mark.parametrize("expression", ["0.0f32 + %x", "%x + 0.0f32", "0.0f32 + (%x + 0.0f32)"])
def test_zero_is_the_unit_of_sums_under_fast_math(expression: str) -> None:
    assert code(expression, fast_math=True) == "%x"
    assert "add" in code(expression), "0.0 + -0.0 is 0.0"


@pytest.mark.parametrize("expression", ["1.0f32 * %x", "%x * 1.0f32", "%x / 1.0f32"])
def test_one_is_the_unit_of_products_for_every_number(expression: str) -> None:
    assert code(expression) == "%x"


def test_a_unit_that_a_substitution_finds_is_used() -> None:
    assert code(f"{lambda_('a', '%a + %x')}(0.0f32)", fast_math=True) == "%x"
    assert code(f"{lambda_('a', '%a * %x')}(1.0f32)") == "%x"


def test_a_function_that_remains_has_a_body_in_which_nothing_is_left_to_do() -> None:
    """`dynamic (StaFun f) = abs $ dynamic (f Dyn)`."""
    body = code(lambda_("a", lambda_("b", "(%a + 1.0f32) * %b + %y")) + "(2.0f32)", is_number=False)
    assert body == (
        "let %f = fn (%b) -> float32 {\nlet %multiply = multiply(3.0f32, %b);\n"
        "let %add = add(%multiply, %y);\n%add\n};\n%f"
    )


# compile p = pe(interpret p)


@dataclass(frozen=True)
class Var:
    index: int


@dataclass(frozen=True)
class Abs:
    body: Expr


@dataclass(frozen=True)
class App:
    function: Expr
    argument: Expr


@dataclass(frozen=True)
class Plus:
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Number:
    value: Float


Expr = Var | Abs | App | Plus | Number


@dataclass(frozen=True)
class Closure:
    body: Expr
    around: list[Value]


@dataclass(frozen=True)
class Sum:
    value: Float


Value = Closure | Sum


@relay
def number(value: Value) -> Float:
    match value:
        case Sum(found):
            return found
        case Closure():
            raise ValueError("a function is no number")


@relay
def run(expr: Expr, around: list[Value]) -> Value:
    match expr:
        case Var(index):
            return around[index]
        case Abs(body):
            return Closure(body, around)
        case Number(value):
            return Sum(value)
        case Plus(left, right):
            return Sum(number(run(left, around)) + number(run(right, around)))
        case App(function, argument):
            given = run(argument, around)
            match run(function, around):
                case Closure(body, inside):
                    return run(body, [given, *inside])
                case Sum():
                    raise ValueError("a number is no function")


@relay
def of_number(expr: Expr, x: Float) -> Float:
    return number(run(expr, [Sum(x)]))


Z0, Z1 = Var(0), Var(1)
TERMS = {
    "(\\x. x + y) 2": (App(Abs(Plus(Z0, Z1)), Number(2.0)), ["add(2.0f32, %x)"]),
    "1 + 2": (Plus(Number(1.0), Number(2.0)), []),
    "(\\y. x + y + 1) x": (
        App(Abs(Plus(Plus(Z1, Z0), Number(1.0))), Z0),
        ["add(%x, %x)", "add(%add, 1.0f32)"],
    ),
    "(\\f. f (f x)) (\\z. z + z)": (
        App(Abs(App(Z0, App(Z0, Z1))), Abs(Plus(Z0, Z0))),
        ["add(%x, %x)", "add(%add, %add)"],
    ),
}


@pytest.mark.parametrize("name", TERMS)
def test_an_interpreter_of_the_calculus_leaves_the_sums_of_its_term(name: str) -> None:
    term, expected = TERMS[name]
    compiled = relay.specialise(of_number, expr=term)
    lines = str(compiled).splitlines()
    assert [line.partition(" = ")[2].rstrip(";") for line in lines if " = add" in line] == expected
    assert not any(word in str(compiled) for word in ("match", "type ", "if ("))
    torch.testing.assert_close(compiled(1.5), of_number(term, 1.5))
