"""Values of gradients that Relay's own tests state, before and after partial evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import relay
from tests.relay.reading import HEADER

KIND = "Tensor[(10, 10), float32]"
PARAMS = f"%x: {KIND}, %y: {KIND}, %z: {KIND}"
DEFINITIONS = f"""{HEADER}
def @double(%t: {KIND}) {{ %t + %t }}
def @twice_double(%t: {KIND}) {{ @double(@double(%t)) }}
"""


def main_of(body: str, params: str = PARAMS) -> Any:
    return relay.parse(f"{DEFINITIONS} def @main({params}) {{ {body} }}")["main"]


def drawn(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(len(shapes))
    return tuple(torch.rand(shape, generator=generator) + 0.5 for shape in shapes)


def expect(main: Any, args: tuple[Any, ...], value: Any, *gradients: Any) -> None:
    """Compare the value and the gradients of its sum, which the function, its residual program,
    the gradient's residual program and the residual program's gradient give."""
    cotangent = torch.ones_like(value)
    for function in (main, relay.specialise(main)):
        found, pull = relay.vjp(function)(*args)
        torch.testing.assert_close(found, value)
        pulled = pull(cotangent)
        pulled = pulled if isinstance(pulled, tuple) else (pulled,)
        torch.testing.assert_close(pulled, gradients)


@pytest.mark.parametrize(
    ("body", "value", "slopes"),
    [
        ("%x", lambda x, y, z: x, (1.0, 0.0, 0.0)),
        ("{ let %id = fn (%t) { %t }; %id(%x) }", lambda x, y, z: x, (1.0, 0.0, 0.0)),
        ("%x + %x", lambda x, y, z: 2 * x, (2.0, 0.0, 0.0)),
        ("let %y1 = %x + %x; %y1 + %y1", lambda x, y, z: 4 * x, (4.0, 0.0, 0.0)),
        ("%x - %x", lambda x, y, z: 0 * x, (0.0, 0.0, 0.0)),
        ("let %t = (%x, %y, %z); %t.0 + %t.1 - %t.2", lambda x, y, z: x + y - z, (1.0, 1.0, -1.0)),
        ("(%x, %y, %z).0 + (%x, %y, %z).1 - (%x, %y, %z).2",
         lambda x, y, z: x + y - z, (1.0, 1.0, -1.0)),
        ("@nat_iterate(@double, succ(succ(succ(zero))))(%x)",
         lambda x, y, z: 8 * x, (8.0, 0.0, 0.0)),
        ("@twice_double(%x)", lambda x, y, z: 4 * x, (4.0, 0.0, 0.0)),
        ("let %r = ref(%x); ref_write(%r, ref_read(%r) + ref_read(%r)); ref_read(%r)",
         lambda x, y, z: 2 * x, (2.0, 0.0, 0.0)),
        # What Relay's lazy initialisation of gradients leaves out: zeros and ones as operands.
        ("%x + zeros_like(%x)", lambda x, y, z: x, (1.0, 0.0, 0.0)),
        ("%x - zeros_like(%y)", lambda x, y, z: x, (1.0, 0.0, 0.0)),
        ("%x * ones_like(%y)", lambda x, y, z: x, (1.0, 0.0, 0.0)),
        ('%x + zeros(shape=[10, 10], dtype="float32")', lambda x, y, z: x, (1.0, 0.0, 0.0)),
        ('%x * ones(shape=[10, 10], dtype="float32")', lambda x, y, z: x, (1.0, 0.0, 0.0)),
    ],
)  # fmt: skip
def test_linear_functions_have_constant_gradients(
    body: str, value: Callable[..., torch.Tensor], slopes: tuple[float, ...]
) -> None:
    args = drawn(*[(10, 10)] * 3)
    gradients = (torch.full((10, 10), slope) for slope in slopes)
    expect(main_of(body), args, value(*args), *gradients)


def test_products_have_the_gradients_of_their_factors() -> None:
    x, y = drawn((10, 10), (10, 10))
    two = f"%x: {KIND}, %y: {KIND}"
    expect(main_of("%x * %x", f"%x: {KIND}"), (x,), x * x, 2 * x)
    expect(main_of("(%x - %y) * %y", two), (x, y), (x - y) * y, y, x - 2 * y)
    expect(main_of("(%x * %y) * ones_like(%x)", two), (x, y), x * y, y, x)
    expect(main_of("nn.relu(%x - %y)", two), (x, y), (x - y).relu(), 1.0 * (x > y), -1.0 * (x > y))


def test_operands_of_other_shapes_get_gradients_of_their_own() -> None:
    x, y = drawn((3, 4, 1), (1, 5))
    params = "%x: Tensor[(3, 4, 1), float32], %y: Tensor[(1, 5), float32]"
    fives, twelves = torch.full_like(x, 5.0), torch.full_like(y, 12.0)
    expect(main_of("%x + %y", params), (x, y), x + y, fives, twelves)
    expect(main_of("%x - %y", params), (x, y), x - y, fives, -twelves)


def test_a_tuple_has_a_tuple_of_gradients() -> None:
    row = "Tensor[(2, 3), float32]"
    main = main_of("%t.0 + %t.1 + %t.2", f"%t: ({row}, {row}, {row})")
    given = drawn((2, 3), (2, 3), (2, 3))
    expect(main, (given,), sum(given), *[torch.ones(2, 3)] * 3)


def test_each_part_of_a_pair_has_its_cotangent() -> None:
    (x,) = drawn((10, 10))
    for body in ("let %y1 = %x + %x; (%y1 + %y1, %y1)", "(%x * 4f, %x + %x)"):
        (first, second), pull = relay.vjp(main_of(body, f"%x: {KIND}"))(x)
        torch.testing.assert_close((first, second), (4 * x, 2 * x))
        one, none = torch.ones(10, 10), torch.zeros(10, 10)
        torch.testing.assert_close(pull((one, none)), 4 * one)
        torch.testing.assert_close(pull((none, one)), 2 * one)


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_inside_an_operator_is_differentiated(condition: bool) -> None:
    main = main_of("log(if (%c) { %x } else { %y })", f"%c: bool, %x: {KIND}, %y: {KIND}")
    x, y = drawn((10, 10), (10, 10))
    none, taken = torch.zeros(10, 10), x if condition else y
    gradients = (1 / x, none) if condition else (none, 1 / y)
    expect(main, (condition, x, y), taken.log(), *gradients)


def test_a_concatenation_with_itself_has_a_type_and_a_gradient() -> None:
    main = main_of("concatenate((%x, %x), axis=1)", f"%x: {KIND}")
    assert main.type == "(x: Tensor[Float, (10, 10)]) -> Tensor[Float, (10, 20)]"
    pullback = "Fn[[Tensor[Float, (10, 20)]], Tensor[Float, (10, 10)]]"
    assert relay.vjp(main).type.endswith(f"-> tuple[Tensor[Float, (10, 20)], {pullback}]")
    (x,) = drawn((10, 10))
    expect(main, (x,), torch.cat((x, x), 1), torch.full((10, 10), 2.0))


def test_second_derivatives_of_a_square() -> None:
    main = main_of("sum(%x * %x)", f"%x: {KIND}")
    (x,) = drawn((10, 10))
    value, pull = relay.vjp(relay.grad(main))(x)
    torch.testing.assert_close(value, 2 * x)
    torch.testing.assert_close(pull(torch.ones(10, 10)), torch.full((10, 10), 2.0))


@pytest.mark.parametrize(
    "body",
    [
        "let %p = nn.dense(%x, %y); sum(%p - sum(%p, axis=[1], keepdims=True))",
        "let %p = nn.dense(%x, %y); let %t = (%p, sum(%p, axis=[1], keepdims=True));"
        " sum(%t.0 - %t.1)",
    ],
)
def test_a_gradient_has_one_product_for_each_of_function_and_operands(body: str) -> None:
    main = main_of(body, "%x: Tensor[(12, 12), float32], %y: Tensor[(12, 12), float32]")
    program = relay.value_and_grad(main).show("simplified")
    assert program.count("linear(") + program.count("matmul(") == 3
