"""Loops over tensors that a known number of rounds change element by element are written out."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay
from pyrelay.ir.expr import Call, Flavour, Function, LetBlock
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import pre_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.rewrites.unroll import MOST, unroll
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.passes.programs import normal

N = Dim("N")

LOOP = """
def @f(%x: Tensor[(3,), float32]) -> Tensor[(3,), float32] {{
    let rec %loop = fn (%i: int64, %y: Tensor[(3,), float32]) -> Tensor[(3,), float32] {{
        if ({test}) {{ {body} }} else {{ {end} }}
    }};
    %loop({begin}i64, %x)
}}
"""


def looping(
    rounds: int,
    body: str = "%loop(%i + 1i64, tanh(%y) * 0.5f32)",
    *,
    begin: int = 0,
    test: str = "",
    end: str = "%y",
) -> Module:
    """Return a loop in A-normal form."""
    test = test or f"%i < {rounds}i64"
    return normal(LOOP.format(begin=begin, test=test, body=body, end=end))


def called(module: Module) -> Counter[str]:
    """Return how often a module calls each operator, and how many loops it has, as `rec`."""
    found: Counter[str] = Counter()
    for node in pre_order(module.functions["f"].body):
        if isinstance(node, Call) and isinstance(node.callee, Op):
            found[node.callee.name] += 1
        found["rec"] += isinstance(node, LetBlock) and node.flavour is Flavour.REC
    return found


def unrolled(module: Module) -> Counter[str]:
    """Return the calls after the pass, which keeps types and values."""
    after = unroll(module)
    verify(after, Stage.ANF)
    x = torch.tensor([0.5, -1.0, 2.0])
    torch.testing.assert_close(evaluate(after, "f", (x,)), evaluate(module, "f", (x,)))
    return called(after)


@pytest.mark.parametrize(
    ("begin", "test", "step", "rounds"),
    [
        (0, "%i < 5i64", "%i + 1i64", 5),
        (2, "%i < 11i64", "%i + 3i64", 3),
        (4, "%i > -1i64", "%i - 1i64", 5),
        (9, "%i > 0i64", "%i + -4i64", 3),
    ],
)
def test_rounds_are_written_out(begin: int, test: str, step: str, rounds: int) -> None:
    body = f"%loop({step}, tanh(%y) * cast(%i, dtype=float32))"
    found = unrolled(looping(rounds, body, begin=begin, test=test))
    assert (found["rec"], found["tanh"]) == (0, rounds)


def test_what_follows_the_last_round_stands_once() -> None:
    found = unrolled(looping(4, end="exp(%y) + cast(%i, dtype=float32)"))
    assert (found["tanh"], found["exp"]) == (4, 1)


@pytest.mark.parametrize("rounds", [MOST, MOST + 1, 10 * MOST + 7])
def test_many_rounds_are_several_at_once(rounds: int) -> None:
    at_once = MOST // 2  # of two operators
    found = unrolled(looping(rounds))
    assert found["rec"] == 1
    assert found["tanh"] == at_once + rounds % at_once


def test_inner_loops_are_written_out_first() -> None:
    inner = """
        let rec %inner = fn (%j: int64, %z: Tensor[(3,), float32]) -> Tensor[(3,), float32] {
            if (%j < 3i64) { %inner(%j + 1i64, tanh(%z)) } else { %z }
        };
        %loop(%i + 1i64, %inner(0i64, %y))"""
    found = unrolled(looping(4, inner))
    assert (found["rec"], found["tanh"]) == (0, 12)


@pytest.mark.parametrize(
    "body",
    [
        "%loop(%i + 1i64, softmax(%y, dim=0))",
        "%loop(%i + %i, tanh(%y))",
        "%loop(%i * 2i64 + 1i64, tanh(%y))",
        "%loop(%i + 1i64, if (%i < 2i64) { tanh(%y) } else { %y })",
        "if (%i < 2i64) { %loop(%i + 1i64, tanh(%y)) } else { %loop(%i + 2i64, %y) }",
    ],
)
def test_other_loops_stay(body: str) -> None:
    module = looping(4, body, begin=1)
    assert unroll(module) is module


def test_loops_over_numbers_or_without_rounds_stay() -> None:
    text = """
    def @f(%n: int64) -> int64 {
        let rec %loop = fn (%i: int64, %s: int64) -> int64 {
            if (%i < 5i64) { %loop(%i + 1i64, %s + %i) } else { %s }
        };
        %loop(0i64, %n)
    }
    """
    module = normal(text)
    assert unroll(module) is module
    module = looping(0)
    assert unroll(module) is module


def test_loops_that_escape_or_are_called_twice_stay() -> None:
    text = LOOP.format(test="%i < 3i64", body="%loop(%i + 1i64, tanh(%y))", end="%y", begin=0)
    twice = normal(text.replace("%loop(0i64, %x)", "%loop(0i64, %x) + %loop(1i64, %x)"))
    assert unroll(twice) is twice
    stored = normal(text.replace("%loop(0i64, %x)", "let %g = %loop; %g(0i64, %x)"))
    assert [f for f in pre_order(unroll(stored).functions["f"]) if isinstance(f, Function)]


@relay
def steps(x: Tensor[Float, (N,)], w: Float) -> Tensor[Float, (N,)]:
    """Return a vector after seven rounds, each with an inner loop of two."""
    y = x
    for i in range(7):
        z = y * w + i
        for _ in range(2):
            z = relay.tanh(z) + 0.1 * y
        y = z * 0.5
    return y


@relay
def loss(x: Tensor[Float, (N,)], w: Float) -> Float:
    """Return the sum of the result of `steps`."""
    return relay.sum(steps(x, w))


@pytest.mark.parametrize("lowering", ["c", "torch", "triton"])
def test_values_and_gradients_are_those_of_torch(
    lowering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYRELAY_LOWERING", lowering)
    x, w = torch.randn(40), torch.tensor(0.7)
    torch.testing.assert_close(steps(x, w), steps.__wrapped__(x, w))
    leaves = [t.clone().requires_grad_() for t in (x, w)]
    expected = torch.autograd.grad(steps.__wrapped__(*leaves).sum(), leaves)
    torch.testing.assert_close(relay.grad(loss, wrt=("x", "w"))(x, w), expected)


@relay
def as_often_as_asked(x: Tensor[Float, (N,)], n: Int) -> Tensor[Float, (N,)]:
    """Return the tanh of a vector, taken `n` times."""
    y = x
    for _ in range(n):
        y = relay.tanh(y)
    return y


def test_a_number_of_rounds_that_is_an_argument_is_a_loop() -> None:
    x = torch.randn(5)
    torch.testing.assert_close(as_often_as_asked(x, 3), x.tanh().tanh().tanh())
