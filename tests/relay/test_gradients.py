"""Gradients of Relay's text: what Relay's own tests state, and what Relay itself could not do.

| behaviour of Relay | where |
|---|---|
| identity, sums, differences, shared values, cells, `nat_iterate`, second order | test_programs |
| operands that were broadcast; one part of a pair | features/gradients/test_sharing |
| no product is computed again | features/gradients/test_sharing |
| a gradient and its partial evaluation | below |

| limit of Relay | where it is none |
|---|---|
| parameters are tensors | below: tuples, data; features/gradients/test_sharing: functions in data |
| a tuple is seeded in its first part | below |
| data whose fields are concrete tensors | below |
| functions that return functions | below |
| operators without a gradient, comparisons in recursion among them | below |
| references run in the interpreter alone | below, compiled |
| first-order mode knows no let, if, match, recursion or call | below; test_programs |
| no forward mode, no `grad` inside programs | below |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import options, relay
from tests.relay.reading import HEADER
from tests.unit.passes.partial_eval.residuals import left

ROWS = "Tensor[(4, 6), float32]"


def main_of(text: str) -> Any:
    return relay.parse(HEADER + text)["main"]


def of_rows(body: str) -> Any:
    return main_of(f"def @main(%x: {ROWS}) {{ {body} }}")


def expect_gradient(main: Any, x: torch.Tensor, meaning: Callable[[torch.Tensor], Any]) -> None:
    """Compare the gradient with that of torch, by the evaluator's operators and compiled."""
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(meaning(leaf), leaf)
    for lowering in ("evaluator", "torch"):
        with options(lowering=lowering):
            torch.testing.assert_close(relay.grad(main)(x), expected, rtol=1e-4, atol=1e-5)


def test_the_parameter_may_be_a_tuple() -> None:
    main = main_of(f"def @main(%t: ({ROWS}, {ROWS}, {ROWS})) {{ sum(%t.0 + %t.1 * %t.2) }}")
    a, b, c = (torch.rand(4, 6) for _ in range(3))
    torch.testing.assert_close(relay.grad(main)((a, b, c)), (torch.ones(4, 6), c, b))


def test_each_part_of_a_tuple_is_seeded() -> None:
    main = of_rows("let %y = %x + %x; (%y + %y, %y)")
    x, one, other = torch.rand(4, 6), torch.rand(4, 6), torch.rand(4, 6)
    _, pull = relay.vjp(main)(x)
    torch.testing.assert_close(pull((one, other)), one * 4.0 + other * 2.0)


def test_fields_of_data_may_be_concrete_tensors() -> None:
    main = main_of(
        f"type Boxed {{ Boxed({ROWS}, int32), Empty }}"
        "def @inside(%b: Boxed) "
        "{ match (%b) { Boxed(%t, _) => { sum(%t * %t) }, Empty => { 0f } } }"
        f"def @main(%x: {ROWS}) {{ @inside(Boxed(%x, 3)) + @inside(Empty) }}"
    )
    expect_gradient(main, torch.rand(4, 6), lambda x: (x * x).sum())


def test_a_function_may_return_a_function() -> None:
    main = main_of(
        f"def @scaled(%y: {ROWS}) {{ fn (%z: {ROWS}) -> {ROWS} {{ %y * %z }} }}"
        f"def @main(%x: {ROWS}) {{ let %f = @scaled(tanh(%x)); sum(%f(%f(%x))) }}"
    )
    expect_gradient(main, torch.rand(4, 6), lambda x: (torch.tanh(x) ** 2 * x).sum())


@pytest.mark.parametrize("condition", ["%n == 0", "%n <= 0", "less(%n, 1)"])
def test_recursion_may_compare_a_number(condition: str) -> None:
    main = main_of(
        f"def @f(%n: int32, %x: {ROWS}) -> {ROWS} "
        f"{{ if ({condition}) {{ %x }} else {{ sin(%x) * @f(%n - 1, %x) }} }}"
        f"def @main(%x: {ROWS}) {{ sum(@f(3, %x)) }}"
    )
    expect_gradient(main, torch.rand(4, 6), lambda x: (torch.sin(x) ** 3 * x).sum())


@pytest.mark.parametrize(
    ("body", "meaning"),
    [
        ("sum(maximum(%x, 0.5f) * %x)", lambda x: (x.clamp(min=0.5) * x).sum()),
        ("sum(minimum(%x, 0.5f) * %x)", lambda x: (x.clamp(max=0.5) * x).sum()),
        ("sum(power(%x, 3f))", lambda x: (x**3).sum()),
        ("sum(min(%x, axis=[1]))", lambda x: x.amin(1).sum()),
        ("sum(prod(%x, axis=[1]))", lambda x: x.prod(1).sum()),
        ("sum(floor(%x) + %x * %x)", lambda x: (x * x).sum()),
        ("sum(rsqrt(%x + 1f))", lambda x: torch.rsqrt(x + 1.0).sum()),
        (
            "let %p = split(%x, indices_or_sections=2, axis=1); sum(%p.0 * %p.1)",
            lambda x: (x[:, :3] * x[:, 3:]).sum(),
        ),
        ("if (sum(%x) > 0f) { sum(exp(%x)) } else { sum(%x) }", lambda x: x.exp().sum()),
    ],
)
def test_operators_that_had_no_gradient(body: str, meaning: Callable[[Any], Any]) -> None:
    expect_gradient(of_rows(body), torch.rand(4, 6), meaning)


def test_references_are_differentiated_in_compiled_code() -> None:
    body = "let %r = ref(%x); ref_write(%r, ref_read(%r) * %x); sum(ref_read(%r))"
    expect_gradient(of_rows(body), torch.rand(4, 6), lambda x: (x * x).sum())


def test_forward_mode_is_there() -> None:
    x, v = torch.rand(4, 6), torch.rand(4, 6)
    found = relay.jvp(of_rows("sum(sin(%x))"))((x,), (v,))
    torch.testing.assert_close(found, (x.sin().sum(), (x.cos() * v).sum()))


# Gradients that are partially evaluated are straight-line code.

PULLED = """def @f(%d: float32) -> float32 { BODY }
def @main(%d: float32) -> float32 { let %p = vjp(@f)(%d); let %pull = %p.1; %pull(1.0f32) }"""


@pytest.mark.parametrize(
    ("body", "rest"),
    [
        ("%d", "1.0f32"),
        ("%d * %d", "add(%d, %d)"),
        ("if (%d > 0.0f32) { %d * 2.0f32 } else { %d }", "if (%greater)"),
    ],
)
def test_a_pullback_that_is_evaluated_leaves_no_closure(body: str, rest: str) -> None:
    found = left(PULLED.replace("BODY", body), (torch.tensor(0.75),))
    assert rest in found
    assert "fn (" not in found
    assert "ref" not in found
