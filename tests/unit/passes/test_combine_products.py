"""Products of one operand with several weights of a loop become one, and only these."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model
from pyrelay.ir.expr import Call
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.insertion import insert
from pyrelay.passes.rewrites.combine_products import CombineProducts, combine_products
from tests.unit.passes.programs import normal

N, T = Dim("N"), Dim("T")
MATRIX = "Tensor[(3, 4), float32]"
WEIGHTS = "%v: Tensor[(5, 4), float32], %w: Tensor[(6, 4), float32], %b: Tensor[(5,), float32]"


def calls(text: str) -> list[str]:
    """Return the operators that a function `f` calls after the pass, in order."""
    module = combine_products(normal(text))
    verify(module, Stage.ANF)
    made = [n.callee for n in post_order(module.functions["f"].body) if isinstance(n, Call)]
    return [c.name for c in made if isinstance(c, Op)]


def in_loop(body: str, more: str = "") -> list[str]:
    """Return the operators of a loop over a matrix whose weights are fixed."""
    return calls(f"""
    def @f(%start: {MATRIX}, {WEIGHTS}{more}) -> {MATRIX} {{
      let rec %loop = fn (%x: {MATRIX}) -> {MATRIX} {{
        {body}
        %loop(tanh(%x + sum(%p) + sum(%q)))
      }};
      %loop(%start)
    }}
    """)


REST = ["sum", "add", "sum", "add", "tanh"]


def test_products_with_fixed_weights_are_one() -> None:
    found = in_loop("let %p = linear(%x, %v); let %q = linear(%x, %w);")
    assert found == ["cat", "linear", "split", *REST]
    biased = in_loop("let %p = linear(%x, %v, %b); let %q = linear(%x, %v, %b);")
    assert biased == ["cat", "cat", "linear", "split", *REST]
    more = ", %k: Tensor[(4, 2), float32], %l: Tensor[(4, 3), float32]"
    found = in_loop("let %p = matmul(%x, %k); let %q = matmul(%x, %l);", more)
    assert found == ["cat", "matmul", "split", *REST]


def test_products_that_differ_in_more_than_their_weights_stay() -> None:
    for body in (
        "let %p = linear(%x, %v, %b); let %q = linear(%x, %w);",
        "let %p = linear(%x, %v); let %q = linear(tanh(%x), %w);",
        "let %p = linear(%x, %v); let %q = linear(%x, tanh(%w));",
    ):
        assert "cat" not in in_loop(body)


def test_outside_of_loops_nothing_is_copied() -> None:
    text = f"def @f(%x: {MATRIX}, {WEIGHTS}) {{ (linear(%x, %v), linear(%x, %w)) }}"
    assert calls(text) == ["linear", "linear"]


def test_convolutions_are_combined_along_their_channels() -> None:
    image, kernel = "Tensor[(1, 2, 4, 4), float32]", "Tensor[(2, 2, 3, 3), float32]"

    def combined(attrs: str) -> list[str]:
        return calls(f"""
        def @f(%start: {image}, %v: {kernel}, %w: {kernel}) -> {image} {{
          let rec %loop = fn (%x: {image}) -> {image} {{
            let %p = conv2d(%x, %v, padding=(1, 1));
            let %q = conv2d(%x, %w, padding=({attrs}));
            %loop(%p + tanh(%q))
          }};
          %loop(%start)
        }}
        """)

    assert combined("1, 1") == ["cat", "conv2d", "split", "tanh", "add"]


@relay_model
def cell(x: Tensor[Float, (N, 8)], h: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 8)]:
    z = relay.sigmoid(relay.linear(x, out_features=8) + relay.linear(h, out_features=8, bias=False))
    n = relay.tanh(relay.linear(x, out_features=8) + relay.linear(h, out_features=8, bias=False))
    return (1.0 - z) * n + z * h


@relay_model
def network(xs: Tensor[Float, (T, N, 8)], h: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 8)]:
    for x in xs:
        h = cell(x, h)
    return h


@pytest.mark.parametrize("lowering", ["torch", "c"])
def test_values_and_gradients_stay(lowering: str) -> None:
    from pyrelay.config import options

    xs, h = torch.randn(5, 3, 8), torch.zeros(3, 8)

    @relay
    def before(xs: Tensor[Float, (T, N, 8)], h: Tensor[Float, (N, 8)]) -> Float:
        return (network(xs, h) ** 2).sum()

    @relay
    def after(xs: Tensor[Float, (T, N, 8)], h: Tensor[Float, (N, 8)]) -> Float:
        return (network(xs, h) ** 2).sum()

    model: Model = relay.create_model(network, seed=0)
    with options(lowering="evaluator"):
        value, grads = relay.value_and_grad(model, before, (xs, h))
    insertion = insert(CombineProducts(), after="simplify")
    try:
        with options(lowering=lowering):
            found, own = relay.value_and_grad(model, after, (xs, h))
    finally:
        insertion.remove()
    torch.testing.assert_close(found, value)
    torch.testing.assert_close(dict(own), dict(grads), rtol=1e-4, atol=1e-5)
