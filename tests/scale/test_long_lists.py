"""The prelude on lists of 20,000 elements: values and gradients, in constant stack."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Float, prelude, relay
from pyrelay.prelude import List

LONG = 20_000


@relay
def every(xs: List[Float]) -> Float:
    ys = prelude.map(relay.tanh, xs)
    last, states = prelude.map_accumr(lambda s, x: (s * 0.5 + x, s), 0.0, ys)
    first, back = prelude.map_accuml(lambda s, x: (s * 0.5 + x, s), 0.0, states)
    kept = prelude.concat(back, prelude.filter(lambda x: x > 0, ys))
    pairs = prelude.zip(ys, prelude.rev(ys))
    return (
        last
        + first
        + sum(kept)
        + prelude.foldr(lambda x, s: s * 0.5 + x, 0.0, ys)
        + prelude.foldl(lambda s, p: s + p[0] * p[1], 0.0, pairs)
    )


def every_in_torch(x: torch.Tensor) -> torch.Tensor:
    ys = list(torch.tanh(x).unbind())
    state, states = torch.tensor(0.0), list[torch.Tensor]()
    for y in reversed(ys):
        states.append(state)
        state = state * 0.5 + y
    last, states = state, states[::-1]
    state, back = torch.tensor(0.0), list[torch.Tensor]()
    for s in states:
        back.append(state)
        state = state * 0.5 + s
    kept = torch.stack([*back, *(y for y in ys if y > 0)]).sum()
    whole = torch.stack(ys)
    return last + state + kept + last + (whole * whole.flip(0)).sum()


@pytest.mark.slow
def test_values_and_gradients_of_long_lists_are_torchs() -> None:
    x = torch.linspace(-1, 1, LONG).requires_grad_()
    wanted = every_in_torch(x)
    wanted.backward()
    xs = list(x.detach().unbind())
    value, gradient = relay.value_and_grad(every)(xs)
    torch.testing.assert_close(value, wanted.detach(), rtol=1e-3, atol=1e-2)
    assert x.grad is not None
    torch.testing.assert_close(torch.stack(list(gradient)), x.grad, rtol=1e-4, atol=1e-4)
