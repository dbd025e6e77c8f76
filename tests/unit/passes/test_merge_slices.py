"""Pieces of tensors are computed together and taken apart at once, and only then."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.ir.expr import Call
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.rewrites.merge_slices import merge_slices
from pyrelay.passes.simplify.dce import remove_dead
from tests.unit.passes.programs import normal

B, H = Dim("B"), Dim("H")


def calls(text: str) -> list[str]:
    """Return the operators that a function `f` calls after the pass, in order."""
    module = merge_slices(normal(text))
    verify(module, Stage.ANF)
    body = remove_dead(module, "f").functions["f"].body
    made = [n.callee for n in post_order(body) if isinstance(n, Call)]
    return [c.name for c in made if isinstance(c, Op)]


def of_vector(body: str) -> list[str]:
    """Return the operators that a function of a vector of 12 calls after the pass."""
    return calls(f"def @f(%x: Tensor[(12,), float32]) {{ {body} }}")


def piece(start: int, stop: int, of: str = "x") -> str:
    """Return a slice as text."""
    return f'index(%{of}, (), spec=(("slice", {start}, {stop}, None),))'


def test_slices_that_leave_nothing_over_are_one_split() -> None:
    assert of_vector(f"({piece(4, 12)}, {piece(0, 4)})") == ["split"]


def test_slices_that_overlap_leave_a_gap_or_are_clamped_stay() -> None:
    assert of_vector(f"({piece(0, 5)}, {piece(4, 12)})") == ["index", "index"]
    assert of_vector(f"({piece(0, 4)}, {piece(5, 12)})") == ["index", "index"]
    assert of_vector(f"({piece(0, 4)}, {piece(4, 11)})") == ["index", "index"]
    assert of_vector(f"({piece(0, 4)}, {piece(4, 20)})") == ["index", "index"]


def test_one_function_of_neighbours_is_computed_once() -> None:
    gates = ", ".join(f"sigmoid({piece(i, i + 2)})" for i in range(0, 8, 2))
    assert of_vector(f"({gates}, tanh({piece(8, 12)}))") == ["split", "sigmoid", "split", "tanh"]
    assert of_vector(f"(tanh({piece(0, 6)}), tanh({piece(6, 12)}))") == ["tanh", "split"]


def test_few_pieces_are_not_worth_taking_them_apart_again() -> None:
    body = f"(sigmoid({piece(0, 4)}), sigmoid({piece(4, 8)}), tanh({piece(8, 12)}))"
    assert of_vector(body) == ["split", "sigmoid", "sigmoid", "tanh"]


def test_functions_of_several_pieces_and_numbers_follow() -> None:
    def gate(start: int, stop: int) -> str:
        return f"sigmoid({piece(start, stop)} * 2.0 + {piece(start, stop, 'y')})"

    text = f"""
    def @f(%x: Tensor[(12,), float32], %y: Tensor[(12,), float32]) {{
        ({gate(0, 4)}, {gate(4, 12)})
    }}"""
    assert calls(text) == ["multiply", "add", "sigmoid", "split"]


def test_pieces_that_are_not_cut_alike_stay() -> None:
    body = f"({piece(0, 4)} + {piece(4, 8)}, {piece(4, 8)} + {piece(8, 12)})"
    assert of_vector(body).count("add") == 2


def test_what_is_not_pointwise_stays() -> None:
    body = f"(softmax({piece(0, 6)}, dim=0), softmax({piece(6, 12)}, dim=0))"
    assert of_vector(body) == ["split", "softmax", "softmax"]


def test_sizes_may_have_names() -> None:
    @relay
    def gates(x: Tensor[Float, (B, 5 * H)], h: Tensor[Float, (B, H)]) -> Tensor[Float, (B, H)]:
        n = h.shape[1]
        a = relay.sigmoid(x[:, :n])
        b = relay.sigmoid(x[:, n : 2 * n])
        c = relay.sigmoid(x[:, 2 * n : 3 * n])
        d = relay.sigmoid(x[:, 3 * n : 4 * n])
        return (a + b) * h + (c - d) * relay.tanh(x[:, 4 * n :])

    x, h = torch.randn(2, 25), torch.randn(2, 5)
    a, b, c, d, e = x.chunk(5, 1)
    expected = (a.sigmoid() + b.sigmoid()) * h + (c.sigmoid() - d.sigmoid()) * e.tanh()
    torch.testing.assert_close(gates(x, h), expected)
    assert gates.show("host").count("sigmoid()") == 1
    assert gates.show("host").count("split_with_sizes") == 2


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_are_torchs(order: int) -> None:
    def value(x: torch.Tensor) -> torch.Tensor:
        a, b, c, d, e = x[:2], x[2:4], x[4:6], x[6:8], x[8:]
        gates = a.sigmoid() * b.sigmoid() - c.sigmoid() * d.sigmoid()
        return (gates * e[:2].tanh() * e[2:].tanh() * b).sum()

    @relay
    def ours(x: Tensor[Float, (12,)]) -> Float:
        a, b, c, d, e = x[:2], x[2:4], x[4:6], x[6:8], x[8:]
        gates = relay.sigmoid(a) * relay.sigmoid(b) - relay.sigmoid(c) * relay.sigmoid(d)
        return (gates * relay.tanh(e[:2]) * relay.tanh(e[2:]) * b).sum()

    x = torch.randn(12)
    v = torch.randn(12)
    if order == 1:
        torch.testing.assert_close(relay.grad(ours)(x), torch.func.grad(value)(x))
        return

    @relay
    def along(x: Tensor[Float, (12,)], v: Tensor[Float, (12,)]) -> Float:
        return (relay.grad(ours)(x) * v).sum()

    second = torch.func.grad(lambda y: (torch.func.grad(value)(y) * v).sum())(x)
    torch.testing.assert_close(relay.grad(along, wrt="x")(x, v), second)
