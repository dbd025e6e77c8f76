"""Closures capture the fields of tuples that they read."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.ir.expr import Function, Var
from pyrelay.ir.module import Module
from pyrelay.ir.traverse import free_vars, post_order
from pyrelay.ir.types import TupleType
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.rewrites.capture_fields import capture_fields
from tests.unit.passes.programs import normal

N = Dim("N")


def captured_tuples(module: Module) -> list[Var]:
    """Return the tuples that closures of a function `f` capture."""
    closures = [n for n in post_order(module.functions["f"].body) if isinstance(n, Function)]
    return [v for c in closures for v in free_vars(c) if isinstance(v.ty, TupleType)]


PROGRAMS = {
    "a field": """
        def @f(%p: (float32, float32)) { fn (%x: float32) -> float32 { add(%p.1, %x) } }
    """,
    "in a branch": """
        def @f(%p: (float32, float32), %b: bool) {
            fn (%x: float32) -> float32 { if (%b) { multiply(%p.1, %x) } else { %p.0 } }
        }
    """,
    "a field of a field": """
        def @f(%p: (float32, (float32, float32))) {
            fn (%x: float32) -> float32 { add(%p.1.0, %x) }
        }
    """,
    "from two functions away": """
        def @f(%p: (float32, float32)) {
            fn (%x: float32) -> fn (float32) -> float32 {
                fn (%y: float32) -> float32 { add(multiply(%p.1, %x), %y) }
            }
        }
    """,
    "in functions that call each other": """
        def @f(%p: (float32, int64)) {
            let rec %even = fn (%n: int64) -> float32 {
                if (equal(%n, %p.1)) { %p.0 } else { %odd(subtract(%n, 1)) }
            } and %odd = fn (%n: int64) -> float32 {
                if (equal(%n, %p.1)) { negative(%p.0) } else { %even(subtract(%n, 1)) }
            };
            %even(3)
        }
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_closures_capture_fields(name: str) -> None:
    before = normal(PROGRAMS[name])
    after = capture_fields(before)
    verify(after, Stage.ANF)
    assert captured_tuples(before)
    assert not captured_tuples(after)


def test_a_tuple_that_is_used_whole_is_captured() -> None:
    text = """
        def @f(%p: (float32, float32)) { fn (%x: float32) { (add(%p.1, %x), %p) } }
    """
    after = capture_fields(normal(text))
    verify(after, Stage.ANF)
    assert captured_tuples(after)


def test_the_tuples_of_a_closure_are_its_own() -> None:
    text = """
        def @f(%a: float32) { fn (%p: (float32, float32)) -> float32 { let %q = (%a, %p.0); %q.1 } }
    """
    module = normal(text)
    assert capture_fields(module) is module


@relay
def pooled(x: Tensor[Float, (N, 1, 8, 8)]) -> Float:
    return (relay.tanh(relay.max_pool2d(x * 2.0, 2)) ** 2.0).sum()


def test_a_pullback_keeps_what_it_needs() -> None:
    x = torch.randn(2, 1, 8, 8)
    value, back = relay.vjp(pooled)(x)
    leaf = x.clone().requires_grad_()
    expected = torch.nn.functional.max_pool2d(leaf * 2.0, 2).tanh().square().sum()
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(back(torch.tensor(1.0)), leaf.grad)
    before, closure = relay.vjp(pooled).show("simplified").split("%pullback = fn")
    assert "%max_pool2d_with_indices.1" in before
    assert "%max_pool2d_with_indices" not in closure
