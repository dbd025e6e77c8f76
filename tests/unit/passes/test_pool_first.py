"""Monotone functions move behind the pools they feed, and only those."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.infer import infer
from pyrelay.ir.normal_form import to_anf
from pyrelay.passes.rewrites.peepholes import POOL_RULES
from pyrelay.passes.simplify.rules import apply_rules
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

N = Dim("N")


def moved(body: str) -> str:
    """Return a function of an image after the pass, as text."""
    source = f"def @f[N: Dim](%x: Tensor[(N, 2, 4, 4), float32]) {{ {body} }}"
    return to_text(apply_rules(to_anf(infer(parse_module(source))), POOL_RULES))


def test_a_monotone_function_is_computed_on_the_pooled_tensor() -> None:
    for name in ("tanh", "sigmoid", "relu"):
        text = moved(f"max_pool2d({name}(%x), kernel_size=(2, 2))")
        assert text.index("max_pool2d(") < text.index(f"{name}(")


def test_what_is_used_elsewhere_or_not_monotone_stays() -> None:
    for body in (
        "let %t = tanh(%x); (max_pool2d(%t, kernel_size=(2, 2)), %t)",
        "max_pool2d(sin(%x), kernel_size=(2, 2))",
        "avg_pool2d(tanh(%x), kernel_size=(2, 2))",
    ):
        text = moved(body)
        assert text.index("(%x") < text.index("_pool2d(")
        assert "pooled" not in text


def test_values_and_gradients_are_torchs_ties_included() -> None:
    @relay
    def pooled(x: Tensor[Float, (N, 2, 4, 4)]) -> Float:
        a = relay.max_pool2d(relay.relu(x), kernel_size=2)
        b = relay.max_pool2d(relay.tanh(x * 30), kernel_size=3, stride=1, padding=1)
        return (a * a).sum() + (b * b * b).sum()

    x = torch.randn(3, 2, 4, 4)
    x[0] = 0.0
    x[1] = -x[1].abs()
    leaf = x.clone().requires_grad_()
    first = torch.nn.functional.max_pool2d(leaf.relu(), 2)
    second = torch.nn.functional.max_pool2d((leaf * 30).tanh(), 3, 1, 1)
    expected = (first * first).sum() + (second * second * second).sum()
    expected.backward()
    torch.testing.assert_close(pooled(x), expected.detach())
    torch.testing.assert_close(relay.grad(pooled)(x), leaf.grad)
