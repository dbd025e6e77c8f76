"""The words of Relay's text: comments, numbers and signs."""

from __future__ import annotations

import pytest

from pyrelay.ir.expr import Constant, Function
from pyrelay.ir.types import DType, TensorType, float16, float32, float64, int16, int32, int64
from tests.relay.reading import mistake, operators, relay, same


def constant(text: str) -> Constant:
    found = relay(text)
    assert isinstance(found, Constant)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "// a line\n()",
        "/* a block */ ()",
        "/* a /* block */ within */ ()",
        '/* "one /* " */ // */ ()',
        "() // at the end",
        "()/* touching */",
    ],
)
def test_comments_nest_and_mean_nothing(text: str) -> None:
    assert same(text, "()")


def test_a_comment_that_is_not_closed_is_pointed_at() -> None:
    assert mistake("def @main() { () }\n/* open /* closed */") == ("RL616", "/*")


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("1", 1, int32),
        ("10i64", 10, int64),
        ("1i16", 1, int16),
        ("-42i", -42, int32),
        ("-1i32", -1, int32),
        ("2147483647", 2147483647, int32),
        ("2147483648", 2147483648, int64),
        ("-2147483648", -2147483648, int32),
        ("-2147483649", -2147483649, int64),
        ("-2147483648i32", -2147483648, int32),
        ("32767i16", 32767, int16),
        ("-32768i16", -32768, int16),
        ("1.0f", 1.0, float32),
        ("3f", 3.0, float32),
        ("1.5f32", 1.5, float32),
        ("2f16", 2.0, float16),
        ("65504f16", 65504.0, float16),
        ("1e-1f", 0.1, float32),
        ("1E+2f64", 100.0, float64),
        ("--10", 10, int32),
        ("---10", -10, int32),
        ("inff", float("inf"), float32),
        ("-inff", float("-inf"), float32),
        ("inff64", float("inf"), float64),
    ],
)
def test_numbers_have_relays_dtypes(text: str, value: float, dtype: DType) -> None:
    found = constant(text)
    assert found.value == value
    assert type(found.value) is type(value)
    assert found.ty == TensorType((), dtype)


@pytest.mark.parametrize("text", ["True", "False"])
def test_bools_are_words(text: str) -> None:
    assert constant(text).value is (text == "True")


@pytest.mark.parametrize(
    "text",
    [
        "2147483648i32",
        "-2147483649i32",
        "32768i16",
        "65505f16",
        "3.40283e+38f32",
        "1e400f64",
        "1.5",
        "1.5i32",
        "3x",
        "-1u8",
    ],
)
def test_numbers_out_of_range_or_without_their_suffix_are_refused(text: str) -> None:
    assert mistake(f"def @main() {{ {text} }}") == ("RL610", text.lstrip("-"))


# Operators and precedence.


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("+", "add"),
        ("-", "subtract"),
        ("*", "multiply"),
        ("/", "divide"),
        ("<", "less"),
        (">", "greater"),
        ("<=", "less_equal"),
        (">=", "greater_equal"),
        ("==", "equal"),
        ("!=", "not_equal"),
    ],
)
def test_signs_are_calls(text: str, name: str) -> None:
    assert same(f"1 {text} 1", f"{name}(1, 1)")


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("1 * 1 + 1", "(1 * 1) + 1"),
        ("1 + 1 * 1", "1 + (1 * 1)"),
        ("1 * 1 + 1 < 1 == 1", "(((1 * 1) + 1) < 1) == 1"),
        ("1 == 1 < 1 + 1 * 1", "1 == (1 < (1 + (1 * 1)))"),
        ("8 - 4 - 2", "(8 - 4) - 2"),
        ("8 / 4 / 2", "(8 / 4) / 2"),
        ("1-1", "subtract(1, 1)"),
        ("2 * -1", "multiply(2, -1)"),
        ("10 * abs(1)", "multiply(10, abs(1))"),
    ],
)
def test_signs_bind_as_in_relay_and_a_minus_between_numbers_subtracts(
    text: str, means: str
) -> None:
    assert same(text, means)
    assert not same("1 * 1 + 1", "1 * (1 + 1)")


def test_a_minus_behind_a_variable_subtracts() -> None:
    assert operators(relay("free_var %x: int32; %x -1")) == ["subtract"]
    assert operators(relay("free_var %x: float32; -%x")) == ["negative"]


def test_an_operator_alone_is_a_function_that_calls_it() -> None:
    found = relay("add")
    assert isinstance(found, Function)
    assert same("add", "fn (%a, %b) { add(%a, %b) }")
    assert operators(relay("nn.global_avg_pool2d")) == ["mean"]
