"""Products of one operand with several weights of a loop become one, and so do convolutions."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Model, Tensor, options, relay, relay_model
from pyrelay.ir.expr import Call
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.rewrites.combine_products import combine_products
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


def test_outside_of_loops_matrices_are_not_copied() -> None:
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


IMAGE, KERNEL = "Tensor[(1, 2, 4, 4), float32]", "Tensor[(3, 2, 3, 3), float32]"


def test_convolutions_are_combined_outside_of_loops() -> None:
    def combined(body: str) -> list[str]:
        return calls(f"""
        def @f(%x: {IMAGE}, %v: {KERNEL}, %w: {KERNEL}, %b: Tensor[(3,), float32]) {{
          let %p = conv2d(%x, %v);
          {body}
          (%p, %q)
        }}
        """)

    assert combined("let %q = conv2d(%x, %w);") == ["cat", "conv2d", "split"]
    assert combined("let %q = conv2d(%x, %w, %b);") == ["conv2d", "conv2d"]
    assert combined("let %q = conv2d(%x, %w, stride=(2, 2));") == ["conv2d", "conv2d"]
    late = combined("let %u = tanh(%w); let %q = conv2d(%x, %u);")
    assert late == ["conv2d", "tanh", "conv2d"]  # the first may be needed before


@relay
def block(
    x: Tensor[Float, (N, 4, 9, 9)],
    v: Tensor[Float, (3, 4, 3, 3)],
    w: Tensor[Float, (5, 4, 3, 3)],
    b: Tensor[Float, (3,)],
    c: Tensor[Float, (5,)],
) -> Float:
    p = relay.tanh(relay.conv2d(x, v, b, padding=1))
    q = relay.sigmoid(relay.conv2d(x, w, c, padding=1))
    return (p.sum(dim=1) * q.sum(dim=1)).sum()


def test_programs_that_call_torch_have_one_convolution() -> None:
    with options(lowering="torch"):
        text = block.show("simplified")
    assert text.count(" conv2d(") == 1
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 4, 9, 9), (3, 4, 3, 3), (5, 4, 3, 3), (3,), (5,))
    args = [torch.randn(shape, generator=generator) for shape in shapes]
    x, v, w, b, c = args

    def reference(*given: torch.Tensor) -> torch.Tensor:
        x, v, w, b, c = given
        p = torch.nn.functional.conv2d(x, v, b, padding=1).tanh()
        q = torch.nn.functional.conv2d(x, w, c, padding=1).sigmoid()
        return (p.sum(dim=1) * q.sum(dim=1)).sum()

    expected = torch.func.grad(reference, argnums=(0, 1, 2, 3, 4))(x, v, w, b, c)
    for lowering in ("torch", "c"):
        with options(lowering=lowering):
            torch.testing.assert_close(block(*args), reference(*args), rtol=1e-4, atol=1e-4)
            found = relay.grad(block)(*args)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


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


def test_gates_of_a_cell_are_one_product_in_programs_that_call_torch() -> None:
    xs, h = torch.randn(5, 3, 8), torch.zeros(3, 8)

    @relay
    def loss(xs: Tensor[Float, (T, N, 8)], h: Tensor[Float, (N, 8)]) -> Float:
        return (network(xs, h) ** 2).sum()

    model: Model = relay.create_model(network, seed=0)
    with options(lowering="evaluator"):
        value, grads = relay.value_and_grad(model, loss, (xs, h))
    for lowering in ("torch", "c"):
        with options(lowering=lowering):
            found, own = relay.value_and_grad(model, loss, (xs, h))
            torch.testing.assert_close(found, value)
            torch.testing.assert_close(dict(own), dict(grads), rtol=1e-4, atol=1e-5)
    with options(lowering="torch"):
        text = loss.show("simplified")
    assert text.count(" linear(") == 2  # of what comes in, before the loop, and of the state
